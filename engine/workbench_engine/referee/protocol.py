"""How carefully a candidate is measured: the numbers of the protocol in one place."""

from __future__ import annotations

from msgspec import Struct


class Profile(Struct, frozen=True):
    """One level of care. Widths are half-widths of the 95 % interval of ln speedup.

    `quick_pairs`: after these a candidate that cannot matter stops. `claim_pairs`: no FASTER is said with fewer (in the
    search fewer will do: what it finds is only called a speedup after a final measurement in a fresh process).
    `relative_width`: allowed half-width as a share of |d| (a 3× needs fewer digits than a 1.02×).
    """

    quick_pairs: int
    claim_pairs: int
    half_width: float
    relative_width: float
    cap_pairs: int
    cap_s: float
    fresh_checks: bool
    resamples: int = 2000


SEARCH = Profile(
    quick_pairs=8, claim_pairs=16, half_width=0.02, relative_width=0.1, cap_pairs=40, cap_s=0.8, fresh_checks=False
)
FINAL = Profile(
    quick_pairs=30, claim_pairs=30, half_width=0.005, relative_width=0.01, cap_pairs=300, cap_s=1.8, fresh_checks=True
)
PROFILES = {"search": SEARCH, "final": FINAL}


class Protocol(Struct, frozen=True):
    """Constants of measuring on one device. Times in seconds, sizes in bytes."""

    inner_batch_s: float = 0.0015
    """A timed block of calls lasts at least this long, so that the round trip stays well under its noise."""
    inner_batch_cap: int = 32
    ring_bytes: int = 256 << 20
    least_delta: float = 0.01
    noisy_delta: float = 0.03
    floor_runs: int = 6
    floor_twins: int = 2
    floor_pairs: int = 20
    check_share: float = 0.06
    """Share of timed calls whose whole output is checked; the last one always is."""
    spot_share: float = 0.5
    """Share of pairs with a check: most of them compare spots of one timed answer only."""
    spot_elements: int = 2048
    sampled_elements: int = 256
    call_deadline_s: float = 20.0
    setup_deadline_s: float = 120.0
    slowest_ratio: float = 40.0
    """A call slower than this many reference calls ends the candidate (deadline), with a floor of 1 s."""
