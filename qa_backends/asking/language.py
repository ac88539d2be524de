"""What language a text looks to be in, where that is plain: for a notice that models may not know it.

A rule of thumb and no more. Letters tell the script; of a text in Latin letters, the commonest words of a few languages
tell which it is. Of running text in none of these, next to no words of English tell that it is in some other. Where
nothing is clear, as in names, code, tables or a line or two, nothing is said.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

LANGUAGES = {"en": "English"}
"""What a family's language is called; a family without one is said nothing of."""
SCRIPTS = {
    "CYRILLIC": "Cyrillic letters",
    "ARABIC": "Arabic letters",
    "CJK": "Chinese characters (Han)",
    "HIRAGANA": "Japanese characters (kana)",
    "KATAKANA": "Japanese characters (kana)",
    "HANGUL": "Korean letters (Hangul)",
    "GREEK": "Greek letters",
    "HEBREW": "Hebrew letters",
    "DEVANAGARI": "Devanagari letters",
    "BENGALI": "Bengali letters",
    "GURMUKHI": "Gurmukhi letters",
    "GUJARATI": "Gujarati letters",
    "TAMIL": "Tamil letters",
    "TELUGU": "Telugu letters",
    "KANNADA": "Kannada letters",
    "MALAYALAM": "Malayalam letters",
    "SINHALA": "Sinhala letters",
    "THAI": "Thai letters",
    "LAO": "Lao letters",
    "KHMER": "Khmer letters",
    "MYANMAR": "Burmese letters",
    "TIBETAN": "Tibetan letters",
    "GEORGIAN": "Georgian letters",
    "ARMENIAN": "Armenian letters",
    "ETHIOPIC": "Ethiopic letters",
}
"""First word of a letter's name in Unicode: what people call such letters."""
KANA = SCRIPTS["HIRAGANA"]
LEAST_LETTERS = 20
FOREIGN_LETTERS = 0.5
"""Share of the letters in one script that makes a text one in that script: less are names and quotations."""
KANA_LETTERS = 0.1
"""Share of kana that tells Japanese, which mixes them with Chinese characters, from Chinese."""
LEAST_WORDS = 20
LEAST_DIFFERENT = 5
"""So many different words of a language's list must stand in the text."""
LEAST_SHARE = 0.1
"""Of a text's words, those in its language's list. Running text has 0.15 to 0.35, a text in another language next to
none but for the words that both write alike."""
LEAST_RUNNING, LEAST_IN_A_ROW = 40, 4
"""Words that tell that a text is not in a language, and how many of them must follow each other with nothing between:
those in lists, tables and code do not."""
LEAST_IN_ANY = 0.06
"""Of running words, English ones: terse notes have less than ``LEAST_SHARE``, texts in other languages less than
this."""
LEAST_ACCENTED = 0.005
"""Of the letters, those beyond English ones, without which terse English cannot be told from another language."""
LEAST_SMALL = 0.6
"""Of the words in a row, those that begin small: of names, less do."""
CLEARLY = 2.5
"""By this factor the language must be ahead of every other, English among them."""

# Words that are common and hardly anything else. Left out are those that stand in names too (de, la, van, der, el, da):
# a list of names is no text in that language.
WORDS = {
    "English": "the of and to that for with was is are it by from this which were has had his her their be at not or "
    "have but they an as on he she its been one who when would there what we you all can more if into than "
    "after some about other these did could only them him because before where during while between",
    "German": "und nicht ist ein eine einen einer einem eines zu mit auf für sich dem das im auch als wird bei wurde "
    "wurden sind nach aus es werden hat haben dass oder zur zum sie er ich wir war waren wie noch nur aber über "
    "durch man sein seine ihre unter vor bis diese dieser kann wenn mehr um sehr zwischen",
    "French": "et les est une un dans que qui pour au par sur il elle ne pas avec se ce sont cette aux été sa ses leur "
    "ils nous vous mais ou où comme plus fut ont était étaient deux après entre aussi très sans même peut ces être "
    "avait depuis tout lui",
    "Spanish": "que en un una por con se su para es como más fue al lo sus pero este esta entre cuando muy sin sobre "
    "también hasta hay donde desde todo nos durante ser son era había porque ellos han uno ya otros fueron y",
    "Italian": "che è un una per con non si sono nel nella come più alla delle degli della anche ma dal dalla fu ha "
    "hanno era erano stato stata essere sua suo questo questa tra dopo gli lo ogni quando al sul sulla molto",
    "Portuguese": "que em um uma para com não por se mais como foi ao seu sua ou os as são também pelo pela até entre "
    "quando muito já na no nas nos aos às isso ele ela depois sem mesmo ser tem está eles foram era é",
    "Dutch": "het een en dat niet te op voor met zijn aan er om ook als dan maar bij uit nog naar door worden wordt "
    "werd werden hij zij wij ze deze dit over tot heeft hebben meer geen na tussen wel kan zich veel toen was is",
}
LISTS = {language: frozenset(words.split()) for language, words in WORDS.items()}


def language_notice(text: str, language: str) -> str:
    """A sentence or two for whoever asks about the text models that know one language, as ``Family.language`` names
    it; empty where the text looks to be in it, where that is not clear, and where the language is not known."""
    known = LANGUAGES.get(language, "")
    found = looks_like(text) if known else ""
    if not known or found == known:
        return ""
    if found in SCRIPTS.values():
        looks = f"is written in {found}"
    elif found:
        looks = f"looks like {found}"
    elif known in LISTS and _lacks(text, known):
        looks = f"does not look like {known}"
    else:
        return ""
    return f"This text {looks}. The models were trained on {known}, so expect poor answers."


def looks_like(text: str) -> str:
    """A value of ``SCRIPTS``, a key of ``WORDS``, or nothing where it is not clear."""
    return _foreign_script(text) or _latin_language(text)


def _foreign_script(text: str) -> str:
    letters: Counter[str] = Counter()
    for letter, count in Counter(text).items():
        if letter.isalpha():
            letters[_script(letter)] += count
    if letters.total() < LEAST_LETTERS:
        return ""
    japanese = letters[KANA] + letters[SCRIPTS["CJK"]]
    if letters[KANA] >= KANA_LETTERS * japanese:
        letters[KANA], letters[SCRIPTS["CJK"]] = japanese, 0
    script, count = letters.most_common(1)[0]
    return script if count > FOREIGN_LETTERS * letters.total() else ""


@cache
def _script(letter: str) -> str:
    """What people call it; empty for Latin letters and signs that only look like letters."""
    return SCRIPTS.get(unicodedata.name(letter, "").split(" ")[0], "")


def _latin_language(text: str) -> str:
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    if words.total() < LEAST_WORDS:
        return ""
    shares = {name: sum(words[each] for each in known) / words.total() for name, known in LISTS.items()}
    first, second, *_ = sorted(shares, key=lambda name: -shares[name])
    if shares[first] < LEAST_SHARE or sum(each in words for each in LISTS[first]) < LEAST_DIFFERENT:
        return ""
    return first if shares[first] >= CLEARLY * shares[second] else ""


def _lacks(text: str, language: str) -> bool:
    """Whether it is running text with next to none of the language's words, and with letters that English has not."""
    words = _running(text)
    accented = sum(not each.isascii() for word in words for each in word)
    known = sum(each in LISTS[language] for each in words)
    return (
        len(words) >= LEAST_RUNNING
        and known < LEAST_IN_ANY * len(words)
        and accented >= LEAST_ACCENTED * sum(map(len, words))
    )


def _running(text: str) -> list[str]:
    """The words of running text: what stands between commas, line breaks, figures and the like, as far as it is not
    made of a few words, or of names."""
    rows = [row.split() for row in re.split(r"[^\w'’ -]|[\d_]|  +", text)]
    rows = [row for row in rows if len(row) >= LEAST_IN_A_ROW]
    return [
        word.lower() for row in rows if sum(each[0].islower() for each in row) >= LEAST_SMALL * len(row) for word in row
    ]
