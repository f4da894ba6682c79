"""What speaks for or against a label: one file per source, their weights, the fusion."""
