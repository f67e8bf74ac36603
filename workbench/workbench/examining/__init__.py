"""What `doctor` looks at: each examination is a function that returns findings and never raises."""
