"""Tables nobody would wish for, drawn by hypothesis: any text, any names, any order."""

from hypothesis import strategies as st

from labelclean.data.marks import EXPORT_MARK, OWN_COLUMNS
from labelclean.data.read import IMAGE_COLUMNS, LABEL_COLUMNS
from labelclean.data.textfiles import ESCAPED

HOSTILE = [
    "007", "NA", "null", "1.0", "nan", "-inf", "a,b", 'say "x"', "two\nlines", "cr\rlf\r\n", "=1+1",
    "+1", "-1", "@x", "\tx", "\rx", "'q", "''", "😀", "é", "é", "a/b", "..", ".", "CON", "x" * 300,
    " lead", "trail ", "a\x00b", "true", "0", "\u202ertl", "<script>", "%41", "\u2028",
]  # fmt: skip
ROLES = {*IMAGE_COLUMNS, *LABEL_COLUMNS, *OWN_COLUMNS, ESCAPED, EXPORT_MARK}
ROLES |= {"split", "verified", "sample_id", "group", "sample_weight"}

# Surrogates cannot be encoded; everything else is allowed anywhere.
text = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8"), max_size=8))
labels = st.one_of(
    st.lists(text.filter(str.strip), min_size=2, max_size=6).filter(lambda x: len(set(x)) > 1),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6).filter(
        lambda x: len(set(x)) > 1
    ),
)
names = text.filter(lambda name: name not in ROLES)


@st.composite
def extra_columns(draw, count):
    values = st.one_of(
        st.lists(st.one_of(st.none(), text), min_size=count, max_size=count),
        st.lists(
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=count, max_size=count
        ),
        st.lists(
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            min_size=count,
            max_size=count,
        ),
        st.lists(st.booleans(), min_size=count, max_size=count),
    )
    return draw(st.dictionaries(names, values, max_size=3))


@st.composite
def tables(draw):
    given_labels = draw(labels)
    columns = {"image": None, "label": given_labels, **draw(extra_columns(len(given_labels)))}
    order = draw(st.permutations(list(columns)))
    return {name: columns[name] for name in order}
