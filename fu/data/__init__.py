"""Archives, and what every client holds of them, on the device once. Uses only the foundation of `fu`."""
