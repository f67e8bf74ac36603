"""Static advice: what a reading of a candidate's source suggests looking at. Badges only, never a verdict."""
