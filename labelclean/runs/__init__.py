"""The run folder: claimed, resumed, read back, compared, checked."""
