"""Made pages and stories for tests of collections."""

from data.collections.gold.random_streams import Dice

STOPWORDS = ("the", "of", "and", "to", "is", "was")


def prose(key, n):
    """Return n words of something like English, different for each key."""
    dice = Dice("prose", key)
    return " ".join(dice.pick(STOPWORDS) if i % 3 == 0 else f"{key}{dice.below(5000)}" for i in range(n))


def menu(key, n):
    """Return a menu of n words without prose."""
    return "<ul>" + "".join(f"<li><a href='#'>{key}x{i} {key}y{i}</a></li>" for i in range(n // 2)) + "</ul>"


def newspage(key, parts, *, around=120, extra=""):
    """Return a page with an article of paragraphs."""
    body = "\n".join(f"<p class=t>{part}</p>" for part in parts)
    return (
        f"<html><head><title>Big {key} story told today - The {key} Times</title>"
        f"<meta name=description content='old'><meta property='og:title' content='Big {key} story told today'>"
        f"<script>var a = '<p>never text</p>';</script></head><body>{menu(key, around)}"
        f"<h1>Big {key} story told today</h1><div class=story>{body}<div class=ad>Buy {key}</div></div>{extra}"
        f"<div>All rights of the {key} Times are reserved</div></body></html>"
    )


def article(key, n=6):
    return [prose(f"{key}{i}p", 40) for i in range(n)]


def sent(number, headline, body, hour):
    date = f"{1 + hour // 24:2d}-MAR-1987 {hour % 24:02d}:00:00.00"
    return {"id": str(number), "title": headline, "date": date, "body": body}


def wire(key, n=4):
    return "\n    ".join(prose(f"{key}{i}w", 50) for i in range(n)) + "\n Reuter\n\x03"
