"""The eyes: Textual screens and widgets that read a Projection and send Commands."""
