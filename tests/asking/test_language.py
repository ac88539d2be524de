"""Whoever asks an English model about another language is told; whoever writes English, code or names is not."""

from __future__ import annotations

import json

import pytest
from helpers import ROOT

from qa_backends import catalog
from qa_backends.asking.language import language_notice, looks_like

LATIN = {
    "German": "Die Stadt liegt am Ufer des Flusses und wurde im zwölften Jahrhundert gegründet. Heute leben dort mehr "
    "als zweihunderttausend Menschen, von denen viele in der Industrie arbeiten. Der alte Markt ist nach dem "
    "Krieg wieder aufgebaut worden, und die Brücke verbindet ihn mit dem neuen Bahnhof.",
    "French": "La ville se trouve au bord du fleuve et fut fondée au douzième siècle. Aujourd'hui, plus de deux cent "
    "mille personnes y vivent, dont beaucoup travaillent dans l'industrie. Le vieux marché a été reconstruit "
    "après la guerre, et le pont le relie à la nouvelle gare.",
    "Spanish": "La ciudad se encuentra a orillas del río y fue fundada en el siglo doce. Hoy viven allí más de "
    "doscientas mil personas, muchas de las cuales trabajan en la industria. El viejo mercado fue "
    "reconstruido después de la guerra, y el puente lo une con la nueva estación.",
    "Italian": "La città si trova sulla riva del fiume e fu fondata nel dodicesimo secolo. Oggi vi abitano più di "
    "duecentomila persone, molte delle quali lavorano nell'industria. Il vecchio mercato è stato ricostruito "
    "dopo la guerra, e il ponte lo collega con la nuova stazione.",
    "Portuguese": "A cidade fica à margem do rio e foi fundada no século doze. Hoje vivem ali mais de duzentas mil "
    "pessoas, muitas das quais trabalham na indústria. O velho mercado foi reconstruído depois da guerra, e a ponte "
    "o liga com a nova estação.",
    "Dutch": "De stad ligt aan de oever van de rivier en werd in de twaalfde eeuw gesticht. Tegenwoordig wonen er meer "
    "dan tweehonderdduizend mensen, van wie velen in de industrie werken. De oude markt is na de oorlog weer "
    "opgebouwd, en de brug verbindt hem met het nieuwe station.",
}
SCRIPTS = {
    "Cyrillic letters": "Город стоит на берегу реки и был основан в двенадцатом веке. Сегодня здесь живут люди.",
    "Greek letters": "Η πόλη βρίσκεται στην όχθη του ποταμού και ιδρύθηκε τον δωδέκατο αιώνα.",
    "Arabic letters": "تقع المدينة على ضفة النهر وقد تأسست في القرن الثاني عشر.",
    "Hebrew letters": "העיר שוכנת על גדת הנהר ונוסדה במאה השתים עשרה.",
    "Devanagari letters": "यह शहर नदी के किनारे बसा है और बारहवीं शताब्दी में स्थापित हुआ था।",
    "Chinese characters (Han)": "这座城市位于河岸边，建于十二世纪。今天有二十多万人居住在这里，其中许多人在工厂工作。",
    "Japanese characters (kana)": "この町は川のほとりにあり、十二世紀に建てられました。今では大勢の人が住んでいます。",
    "Korean letters (Hangul)": "이 도시는 강가에 자리 잡고 있으며 십이 세기에 세워졌다. 오늘날 이십만 명이 산다.",
    "Thai letters": "เมืองนี้ตั้งอยู่ริมแม่น้ำและก่อตั้งขึ้นในศตวรรษที่สิบสอง",
}


OTHERS = {
    "Polish": "Miasto leży nad brzegiem rzeki i zostało założone w dwunastym wieku. Dziś mieszka tam ponad dwieście"
    " tysięcy ludzi, z których wielu pracuje w przemyśle. Stary rynek został odbudowany po wojnie, a most"
    " łączy go z nowym dworcem. Latem odbywa się tu duży festiwal muzyki, na który przyjeżdżają goście z "
    "całego kraju. W zimie ulice są ciche, bo większość studentów wraca wtedy do domu, do swoich rodzin "
    "na wsi.",
    "Swedish": "Staden ligger vid flodens strand och grundades på tolvhundratalet. I dag bor det mer än "
    "tvåhundratusen människor där, och många av dem arbetar inom industrin. Det gamla torget byggdes upp "
    "igen efter kriget, och bron förbinder det med den nya stationen. På sommaren hålls en stor "
    "musikfestival som lockar gäster från hela landet. På vintern är gatorna tysta, eftersom de flesta "
    "studenter då reser hem till sina familjer.",
    "Turkish": "Şehir nehrin kıyısında yer alır ve on ikinci yüzyılda kurulmuştur. Bugün orada iki yüz binden fazla "
    "insan yaşıyor ve bunların birçoğu sanayide çalışıyor. Eski pazar savaştan sonra yeniden inşa edildi "
    "ve köprü onu yeni istasyona bağlıyor. Yazın burada ülkenin her yerinden konukların geldiği büyük bir"
    " müzik festivali düzenlenir. Kışın ise sokaklar sessizdir, çünkü öğrencilerin çoğu o zaman "
    "ailelerinin yanına döner.",
    "Danish": "Byen ligger ved flodens bred og blev grundlagt i det tolvte århundrede. I dag bor der mere end to "
    "hundrede tusind mennesker, hvoraf mange arbejder i industrien. Det gamle torv blev genopbygget efter"
    " krigen, og broen forbinder det med den nye station. Om sommeren holdes der en stor musikfestival, "
    "som lokker gæster til fra hele landet. Om vinteren er gaderne stille, for de fleste studerende "
    "rejser hjem for at være hos deres familier.",
    "Finnish": "Kaupunki sijaitsee joen rannalla ja se perustettiin kahdennellatoista vuosisadalla. Nykyään siellä "
    "asuu yli kaksisataatuhatta ihmistä, joista monet työskentelevät teollisuudessa. Vanha tori "
    "rakennettiin uudelleen sodan jälkeen ja silta yhdistää sen uuteen asemaan. Kesällä kaupungissa "
    "järjestetään suuri musiikkijuhla, johon saapuu vieraita koko maasta. Talvella kadut ovat hiljaisia, "
    "koska suurin osa opiskelijoista palaa silloin kotiin perheidensä luokse.",
    "Czech": "Město leží na břehu řeky a bylo založeno ve dvanáctém století. Dnes v něm žije více než dvě stě "
    "tisíc lidí, z nichž mnozí pracují v průmyslu. Staré tržiště bylo po válce znovu postaveno a most ho "
    "spojuje s novým nádražím. V létě se tu koná velký hudební festival, na který přijíždějí hosté z celé"
    " země. V zimě jsou ulice tiché, protože většina studentů se tehdy vrací domů ke svým rodinám.",
}
"""Languages without a list of their own; some write words as English does: to, for, at, on, her."""


@pytest.mark.parametrize("language", LATIN)
def test_a_paragraph_is_known_by_its_commonest_words(language: str) -> None:
    assert looks_like(LATIN[language]) == language
    assert looks_like(LATIN[language].upper()) == language


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_in_other_letters_is_known_by_them(script: str) -> None:
    assert looks_like(SCRIPTS[script]) == script
    assert looks_like(SCRIPTS[script] + " (BBC News)") == script, "a name in Latin letters changes nothing"


def test_japanese_is_known_by_a_few_kana_among_many_chinese_characters() -> None:
    assert looks_like("東京都知事選挙管理委員会は、投票所入場整理券を発送した。") == "Japanese characters (kana)"


def test_whoever_asks_english_models_is_told_in_a_sentence() -> None:
    assert language_notice(LATIN["German"], "en") == (
        "This text looks like German. The models were trained on English, so expect poor answers."
    )
    assert language_notice(SCRIPTS["Greek letters"], "en").startswith("This text is written in Greek letters. The mod")


TERSE = {
    "a clinical note": "Patient seen today, reports mild headache since Tuesday morning. Vitals stable, temperature "
    "normal, blood pressure slightly raised. Advised rest, fluids, paracetamol four times daily. Review next week, "
    "sooner if symptoms worsen. Bloods taken today, results expected Thursday. Allergies none known.",
    "an abstract": "Study compares pruned transformer encoders across three processor generations. Measured latency "
    "fell steeply while accuracy dropped slightly. Results suggest structured sparsity helps older machines most. "
    "Further experiments using larger encoders show similar gains, although memory bandwidth limits newer chips.",
    "a curriculum vitae": "Led small team building payment software. Reduced server costs through careful profiling. "
    "Managed yearly budget covering three departments. Trained seven junior engineers during two years. Wrote "
    "internal guidelines about code review. Speaks fluent Spanish, basic German. Enjoys hiking, chess, baking bread.",
}
"""English with few of its small words."""


@pytest.mark.parametrize("kind", TERSE)
def test_terse_english_is_not_said_to_be_none(kind: str) -> None:
    assert language_notice(TERSE[kind], "en") == ""


@pytest.mark.parametrize("language", OTHERS)
def test_running_text_with_next_to_no_english_words_is_said_not_to_look_like_english(language: str) -> None:
    assert language_notice(OTHERS[language], "en") == (
        "This text does not look like English. The models were trained on English, so expect poor answers."
    )
    assert language_notice(" ".join(OTHERS[language].split()[:20]), "en") == "", "a line or two may be anything"


def test_of_models_whose_language_is_not_known_nothing_is_said() -> None:
    assert language_notice(LATIN["German"], "") == language_notice(OTHERS["Polish"], "") == ""
    assert language_notice(LATIN["German"], "xx") == ""


def test_the_families_that_ship_know_english_and_an_own_one_need_not_say() -> None:
    assert {each.name: each.language for each in catalog.families()}.items() >= {("minilm", "en"), ("bert-large", "en")}
    assert catalog.Family("own", "Own", ()).language == ""


def test_no_text_that_ships_is_flagged() -> None:
    texts = [each["context"] for each in json.loads((ROOT / "assets" / "examples.json").read_text(encoding="utf-8"))]
    for file in (ROOT / "assets").glob("questions*.json"):
        data = json.loads(file.read_text(encoding="utf-8"))["data"]
        texts += [each["context"] for article in data for each in article["paragraphs"]]
    written = json.loads((ROOT / "assets" / "training" / "written.json").read_text(encoding="utf-8"))["data"]
    texts += [each["context"] for article in written for each in article["paragraphs"]][::50]
    assert len(texts) > 40
    assert [text[:60] for text in texts if language_notice(text, "en")] == []


ENGLISH_WITH_FRENCH_NAMES = (
    "Charles de Gaulle met Valéry Giscard d'Estaing and Jean de Lattre de Tassigny in the Hôtel de la Marine, near the "
    "Place de la Concorde, before they went to the Musée des Beaux-Arts et d'Archéologie de Besançon for the evening."
)
NAMES = (
    "María de la Cruz; Juan de los Santos; Leonardo da Vinci; Charles de Gaulle; Ludwig van Beethoven; "
    "Vasco da Gama; Miguel de Cervantes; Jean de La Fontaine; Catherine de' Medici; Walther von der Vogelweide; "
    "Vincent van Gogh; Antoine de Saint-Exupéry; Garcilaso de la Vega; Hernando de Soto; Simone de Beauvoir"
)
CODE = """
def fibonacci(n: int) -> list[int]:
    if n <= 0: return []
    values = [0, 1]
    while len(values) < n: values.append(values[-1] + values[-2])
    return values[:n]
for index, value in enumerate(fibonacci(10)): print(f"{index}: {value}", end=", ")
SELECT id, name FROM users WHERE age > 30 ORDER BY name DESC LIMIT 10; const un = que => que.map(e => e.id)
"""
NUMBERS = "Q1 2021 | 1,204.5 | 33.1 %\nQ2 2021 | 1,310.0 | 35.9 %\nQ3 2021 | 1,402.2 | 36.0 %\n" * 20
SHORT = "Die Katze schläft auf dem Sofa, und der Hund ist nicht im Garten."
ADDRESSES = "anna@shop.com; ben@shop.com; carla@shop.com; dora@mail.com; emil@mail.com; fritz@mail.com; " * 3
ENGLISH = (
    "The city lies on the bank of the river and was founded in the twelfth century. Today many thousands of people "
    "live there, many of whom work in industry. The old market was rebuilt after the war."
)
MIXED = f"{LATIN['German']} {ENGLISH} {LATIN['German']}"
QUOTING = (
    "The inscription on the wall reads Γνῶθι σεαυτόν, which is Greek for know thyself, and the word школа on the door "
    "beside it is Russian for school; both were painted by the same pupil in the spring of 1987."
)
LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore "
    "magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo."
)


LIST = (
    "Müller und Söhne; Becker mit Partnern, Bonn; Haus zur Sonne, Trier; Kunst im Hof, Mainz; Kleidung nach Maß; "
    + "; ".join(
        f"{name} GmbH, {town}" for name in ("Weber", "Schulze", "Krause") for town in ("Köln", "Jena", "Hof", "Kiel")
    )
)
INGREDIENTS = "flour, sugar, butter, baking powder, ground almonds, grated lemon peel, salt, milk, vanilla sugar, " * 6
TABLE = (
    "Kessler Birgül     rain boots yellow     size small     kept\nLund Hjördis       wool socks grey     returned\n"
    * 9
)
PROGRAM = (
    "while queue: node = queue.pop(); seen.add(node); queue.extend(each for each in node.next if each not in seen)\n"
    * 9
)
UNCLEAR = {
    "ingredients": INGREDIENTS,
    "a table": TABLE,
    "a program": PROGRAM,
    "English with French names": ENGLISH_WITH_FRENCH_NAMES,
    "names": NAMES,
    "code": CODE,
    "numbers": NUMBERS,
    "addresses": ADDRESSES,
    "a short text": SHORT,
    "half English": MIXED,
    "quotations": QUOTING,
    "filler": LOREM,
    "a list with a few words": LIST,
    "three scripts": f"{SCRIPTS['Cyrillic letters']} {SCRIPTS['Greek letters']} {ENGLISH[:70]}",
    "two characters": "你好",
    "no letters": "\ud800 🙂 " * 50,
    "nothing": "",
}


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR)
def test_where_it_is_not_clear_nothing_is_said(text: str) -> None:
    assert language_notice(text, "en") == ""


def test_english_is_known_as_such() -> None:
    """So that nothing being said of a text in English is no accident."""
    assert looks_like(ENGLISH) == looks_like(ENGLISH_WITH_FRENCH_NAMES) == looks_like(QUOTING) == "English"
