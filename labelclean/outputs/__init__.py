"""The form of the answer: Parquet, matrices, figures, report, run.json."""
