"""Inline styles and scripts: the bulk of a page's bytes, constant for a site, without a word of prose."""

from __future__ import annotations

from collections.abc import Callable

from data.gold.dice import Dice

_PARTS = (
    "nav", "menu", "story", "byline", "photo", "caption", "ad", "tower", "banner", "rail", "box", "teaser", "brief", "tools",
    "footer", "legal", "search", "login", "poll", "tabs", "hed", "graf", "pull", "date", "weather", "ticker", "comment",
    "thread", "gallery", "promo", "more", "module", "inset", "callout", "flag", "bar",
)  # fmt: skip
_STATES = ("", " a", " a:hover", " a:visited", " li", " td", " h3", " p", " img", " ul li a", ".first", ".on", " span")
_PROPERTIES: tuple[tuple[str, Callable[[Dice], str]], ...] = (
    ("color", lambda d: f"#{d.below(4096):03x}"),
    ("background-color", lambda d: f"#{d.below(16777216):06x}"),
    ("background", lambda d: f"#{d.below(4096):03x} url(/img/bg{d.below(90)}.gif) no-repeat {d.below(9)}px {d.below(60)}px"),
    ("font", lambda d: f"{d.pick(('bold ', '', 'italic '))}{d.between(9, 19)}px/{d.between(11, 24)}px {d.pick(('Arial, Helvetica, sans-serif', 'Georgia, serif', 'Verdana, sans-serif'))}"),
    ("margin", lambda d: f"{d.below(12)}px {d.below(12)}px {d.below(20)}px {d.below(12)}px"),
    ("padding", lambda d: f"{d.below(9)}px {d.below(9)}px"),
    ("border", lambda d: f"{d.between(1, 3)}px {d.pick(('solid', 'dotted', 'dashed'))} #{d.below(4096):03x}"),
    ("width", lambda d: f"{d.between(40, 760)}px"),
    ("height", lambda d: f"{d.between(10, 260)}px"),
    ("float", lambda d: d.pick(("left", "right", "none"))),
    ("display", lambda d: d.pick(("block", "inline", "none"))),
    ("text-decoration", lambda d: d.pick(("none", "underline"))),
    ("letter-spacing", lambda d: f".{d.between(1, 9)}em"),
    ("position", lambda d: d.pick(("relative", "absolute", "static"))),
)  # fmt: skip
_FUNCTIONS = (
    "function {n}(u, w, h) {{\n  var f = 'width=' + w + ',height=' + h + ',scrollbars=yes,resizable=yes,left={a},top={b}';\n"
    "  window.open(u, '{n}', f);\n  return false;\n}}",
    "function {n}(name) {{\n  var all = document.cookie.split('; ');\n  for (var i = 0; i < all.length; i++) {{\n"
    "    var pair = all[i].split('=');\n    if (pair[0] == name) return unescape(pair[1]);\n  }}\n  return '{a}';\n}}",
    "function {n}(id) {{\n  var el = document.getElementById ? document.getElementById(id) : document.all[id];\n"
    "  if (!el) return;\n  el.style.display = (el.style.display == 'none') ? 'block' : 'none';\n  el.style.left = '{a}px';\n}}",
    "function {n}() {{\n  for (var i = 0; i < arguments.length; i++) {{\n    var im = new Image();\n"
    "    im.src = '/rollover/{a}/' + arguments[i] + '_on.gif';\n    cache{b}[cache{b}.length] = im;\n  }}\n}}\n"
    "var cache{b} = new Array();",
    "function {n}(slot) {{\n  var ord = Math.floor(Math.random() * {a}0000);\n"
    "  document.write('<scr' + 'ipt src=\"http://adserver.example/js/' + slot + ';tile={b};ord=' + ord + '?\"></scr' + 'ipt>');\n"
    "  document.write(\"<\\/div><div class='{n}'>\");\n}}",
    "function {n}(form) {{\n  if (form.q.value == '' || form.q.value.length > {a}) {{\n    alert('{b}');\n    return false;\n  }}\n"
    "  form.action = '/search/{b}/';\n  return true;\n}}",
    "var {n}Size = {b};\nfunction {n}(step) {{\n  {n}Size += step;\n  if ({n}Size > {a}) {n}Size = {a};\n"
    "  var ps = document.getElementsByTagName('p');\n"
    "  for (var i = 0; i < ps.length; i++) ps[i].style.fontSize = {n}Size + 'px';\n}}",
    "var {n} = [{a}, {b}, {c}, '{c}', '/track/{a}/{b}.gif', '<b>{c}</b>', true, null];\n"
    "if (navigator.userAgent.indexOf('MSIE {b}') > 0 && {n}[0] < {c}) {{\n  {n}[3] = '<!-- {a} -->';\n}}",
    "function {n}() {{\n  var t = document.getElementById('{n}{a}');\n  if (t) t.scrollLeft += {b};\n"
    "  window.setTimeout('{n}()', {c});\n}}",
)  # fmt: skip
_VERBS = (
    "open",
    "show",
    "swap",
    "load",
    "track",
    "check",
    "set",
    "get",
    "write",
    "move",
    "roll",
    "send",
    "pick",
    "init",
)


def css(dice: Dice, size: int) -> str:
    """Return about ``size`` bytes of style rules."""
    rules, total = [], 0
    while total < size:
        body = "; ".join(f"{name}: {value(dice)}" for name, value in dice.sample(_PROPERTIES, dice.between(2, 6)))
        rules.append(f".{dice.pick(_PARTS)}{dice.pick(_STATES)} {{ {body} }}")
        total += len(rules[-1]) + 1
    return "\n".join(rules)


def js(dice: Dice, size: int) -> str:
    """Return about ``size`` bytes of script, with markup and closing tags inside its strings."""
    functions, total = [], 0
    while total < size:
        name = dice.pick(_VERBS) + dice.pick(_PARTS).capitalize() + str(dice.below(30))
        text = dice.pick(_FUNCTIONS)
        functions.append(text.format(n=name, a=dice.between(10, 900), b=dice.between(2, 99), c=dice.between(100, 9000)))
        total += len(functions[-1]) + 1
    return "\n".join(functions)
