"""Make docs/assets/fonts/noto-sans-math.woff2: the part of Noto Sans Math that the site's formulas can use.

    npm pack @fontsource/noto-sans-math@5.3.0 && tar xf fontsource-noto-sans-math-5.3.0.tgz
    pip install fonttools brotli
    python scripts/subset_font.py package/files/noto-sans-math-latin-400-normal.woff2

The input must be version 3 of the font: only that has the MATH table, without which brackets, braces, roots
and sums do not stretch. (Debian 12's fonts-noto-core carries version 2.) Its licence is package/LICENSE.
"""

import argparse
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

OUTPUT = Path(__file__).parent.parent / "docs/assets/fonts/noto-sans-math.woff2"

# First and last character of each range.
RANGES = (
    (0x0020, 0x007E),  # ASCII
    (0x00A0, 0x00FF),  # signs such as × ± · and the accents of text in formulas
    (0x02C6, 0x02DD),  # accents
    (0x0300, 0x0338),  # combining accents and the stroke of "not"
    (0x0391, 0x03F6),  # Greek
    (0x2010, 0x2057),  # dashes, quotation marks, dots, primes
    (0x20D0, 0x20E1),  # combining arrows
    (0x2102, 0x2138),  # letter-like: double-struck R, script L
    (0x2190, 0x21DD),  # arrows
    (0x2200, 0x22FF),  # operators and relations
    (0x2308, 0x230B),  # floor and ceiling
    (0x239B, 0x23B5),  # parts of tall brackets
    (0x23DC, 0x23E1),  # horizontal braces
    (0x25A0, 0x25CF),  # squares, triangles, circles
    (0x27C2, 0x27C2),  # perpendicular
    (0x27E6, 0x27EF),  # angle and white brackets
    (0x27F5, 0x27FC),  # long arrows
    (0x2A00, 0x2A06),  # big operators
    (0x2A7D, 0x2A7E),  # slanted less-or-equal, greater-or-equal
    (0x2AAF, 0x2AB0),  # precedes-or-equal, succeeds-or-equal
    (0xFE00, 0xFE00),  # which chooses the calligraphic form of a script letter
    (0x1D400, 0x1D4CF),  # bold, italic, bold italic, script letters
    (0x1D538, 0x1D56B),  # double-struck letters
    (0x1D6A4, 0x1D755),  # dotless i and j; bold, italic, bold italic Greek
    (0x1D7CE, 0x1D7E1),  # bold and double-struck digits
)


def characters() -> list[int]:
    """The code points to keep, where the font has them."""
    return [point for first, last in RANGES for point in range(first, last + 1)]


def subset(font: TTFont) -> None:
    """Reduce the font in place, and mend what browsers take from it."""
    options = Options()
    options.flavor = "woff2"
    options.hinting = False
    options.layout_features = ["ccmp", "ssty", "dtls", "rtlm", "mark", "mkmk"]
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters())
    subsetter.subset(font)
    constants = font["MATH"].table.MathConstants
    # The font's own subscripts hang far below letters with a descender, so that those of "ρ_t A_t" make a step,
    # and at 60 % they are smaller than text may be.
    constants.SubscriptBaselineDropMin.Value = 0
    constants.ScriptPercentScaleDown = 72
    constants.ScriptScriptPercentScaleDown = 60
    # Windows would take the height of the tallest bracket for that of a line.
    font["OS/2"].usWinAscent = font["hhea"].ascent
    font["OS/2"].usWinDescent = -font["hhea"].descent


def main() -> None:
    parser = argparse.ArgumentParser(description="Subset Noto Sans Math for the site.")
    parser.add_argument("font", type=Path, help="Noto Sans Math 3 as .ttf or .woff2")
    font = TTFont(parser.parse_args().font, recalcTimestamp=False)
    if "MATH" not in font:
        parser.error("this font has no MATH table: version 3 of Noto Sans Math is needed")
    subset(font)
    font.flavor = "woff2"
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    font.save(OUTPUT)
    print(f"{OUTPUT.name}: {len(font.getBestCmap())} characters, {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
