"""The papers' experiments on any data whose truth is known: losses x noise x seeds."""
