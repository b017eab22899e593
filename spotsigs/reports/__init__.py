"""What is shown: tables, HTML pages of clusters and pairs, lines on the terminal."""
