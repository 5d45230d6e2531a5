"""Cases of `benchmarks/train.py`: data, our arm, the peers' arms."""
