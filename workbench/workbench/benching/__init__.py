"""Drivers that show what the workbench can do, through the same engine as any run."""
