"""Training data: overlap with benchmarks."""

from postgrad.data.overlap import Overlap, OverlapReport, overlap

__all__ = ["Overlap", "OverlapReport", "overlap"]
