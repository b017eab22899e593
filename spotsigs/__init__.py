"""SpotSigs: exact near-duplicate detection with stopword-anchored signatures (Theobald, Siddharth, Paepcke 2008)."""

__version__ = "0.1.0"
