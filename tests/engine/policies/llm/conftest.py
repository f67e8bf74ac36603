import sys
from pathlib import Path

# So that tests can import the helpers beside them however pytest was started.
sys.path.insert(0, str(Path(__file__).parents[4]))
