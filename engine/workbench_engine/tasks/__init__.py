"""What is optimised: the task contract, its formats, the bundled tasks."""
