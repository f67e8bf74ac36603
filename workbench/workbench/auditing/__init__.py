"""Released kernels put before the referee: what was claimed beside what can be measured here."""
