"""The words of the product: metrics, records, flags, trainers, captures. No I/O."""
