"""The model card says where a model comes from, whatever the data is called."""

from dataclasses import replace

from huggingface_hub import ModelCard

from labelclean.outputs.model_card import CardFacts, model_card

FACTS = CardFacts(
    data="birds.csv",
    digest="a" * 64,
    classes=("crow", "owl"),
    backbone="test_resnet",
    license="apache-2.0",
    mode="head",
    image_size=96,
    loss="gce",
    rows=120,
    counts={"relabel": 7, "review": 3, "drop": 0, "unreadable": 1},
    noise_rate=0.0625,
    corrected=False,
    accuracy={"split test": 0.875},
)


def test_what_a_reader_must_know():
    text = model_card(FACTS).decode()
    card = ModelCard(text)
    assert card.data.license == "apache-2.0"
    assert card.data.library_name == "timm"
    assert "noisy-labels" in card.data.tags
    assert "audited by a machine" in text
    assert "relabelled 7 rows" in text
    assert "6.2%" in text
    assert "with the labels as given" in text
    assert "split test: 87.5%" in text
    assert "`test_resnet`" in text
    after = model_card(replace(FACTS, corrected=True, decided=2)).decode()
    assert "with the corrected labels; a person decided 2" in after
    assert "Not measured" in model_card(replace(FACTS, accuracy={})).decode()


def test_foreign_text_stays_text():
    hostile = replace(
        FACTS,
        data="a\n---\nlicense: mit\n# b",
        classes=("<script>x</script>", "![p](http://x)\n## c"),
        license='x"\ntags: [evil]',
        backbone="a`b",
    )
    text = model_card(hostile).decode()
    card = ModelCard(text)
    assert card.data.license == 'x"\ntags: [evil]'
    assert "labelclean" in card.data.tags
    assert "\n## c" not in text
    assert "<script>" not in text
    assert "[p](" not in text


def test_weights_without_a_licence_are_named():
    text = model_card(replace(FACTS, license=None)).decode()
    assert ModelCard(text).data.license == "other"
    assert "No licence is stated" in text
