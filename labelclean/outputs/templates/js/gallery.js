// The gallery: cards of the rows that match, drawn as they are needed; one of them is selected.
const STEP = 60;
const DECIDED_WORDS = { confirm: "confirmed", relabel: "relabelled", drop: "dropped", unsure: "unsure", none_of_these: "none fits" };

class Gallery {
  constructor(source, selected, mark) {
    Object.assign(this, { source, selected, mark, rows: [], total: 0, at: -1, turn: 0, query: null, busy: null });
    this.box = byId("gallery");
    this.box.addEventListener("click", (event) => {
      const card = event.target.closest("[role=option]");
      if (!card) return;
      this.select(this.rows.findIndex((row) => "row-" + row.row === card.id));
      if (event.ctrlKey || event.metaKey) this.mark(this.current);
    });
    byId("more").addEventListener("click", () => this.more());
    new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) this.more(); }, { rootMargin: "600px" }).observe(byId("more"));
  }

  get current() { return this.rows[this.at] || null; }

  // Begin again with another query; an answer to an earlier one is not drawn any more.
  async show(query) {
    const turn = ++this.turn;
    const kept = this.current?.row;
    const page = await this.source.list(query, 0, STEP);
    if (turn !== this.turn) return;
    Object.assign(this, { query, rows: page.rows, total: page.total, busy: null });
    this.box.replaceChildren(...page.rows.map(cardOf));
    const again = this.rows.findIndex((row) => row.row === kept);
    this.tell();
    this.select(again >= 0 ? again : this.rows.length ? 0 : -1, false);
  }

  more() {
    if (!this.busy && this.rows.length < this.total) this.busy = this.load().finally(() => { this.busy = null; });
    return this.busy;
  }

  async load() {
    const turn = this.turn;
    // Rows decided meanwhile have left the server's list of undecided ones.
    const passed = this.query.decided === "no" ? this.rows.filter((row) => !row.decision).length : this.rows.length;
    const page = await this.source.list(this.query, passed, STEP);
    if (turn !== this.turn) return;
    const known = new Set(this.rows.map((row) => row.row));
    const fresh = page.rows.filter((row) => !known.has(row.row));
    this.rows.push(...fresh);
    this.box.append(...fresh.map(cardOf));
    if (!fresh.length) this.total = this.rows.length;
    this.tell();
  }

  tell() {
    const rest = served ? "" : sampledWords();
    byId("matches").textContent = (this.total ? `${counted(this.total)} rows match.` : "No row matches.") + rest;
    byId("more").hidden = this.rows.length >= this.total;
  }

  select(at, move = true) {
    this.box.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    this.at = at;
    const row = this.current;
    const card = row && byId("row-" + row.row);
    if (card) {
      card.setAttribute("aria-selected", "true");
      this.box.setAttribute("aria-activedescendant", card.id);
      if (move) card.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else this.box.removeAttribute("aria-activedescendant");
    this.selected(row);
  }

  async step(by) {
    const next = this.at + by;
    if (next >= this.rows.length && this.rows.length < this.total) await this.more();
    if (next >= 0 && next < this.rows.length) this.select(next);
    else say(by > 0 ? "This is the last row." : "This is the first row.");
  }

  redraw(row) {
    const card = byId("row-" + row.row);
    if (!card) return;
    const fresh = cardOf(row);
    fresh.setAttribute("aria-selected", String(this.current === row));
    card.replaceWith(fresh);
  }
}

function sampledWords() {
  const flagged = data.counts.flagged, inside = data.rows.filter((row) => FLAGGED.includes(row.action)).length;
  const kept = data.rows.filter((row) => row.action === "keep").length;
  const parts = [];
  if (inside < flagged) parts.push(`${counted(inside)} of ${counted(flagged)} flagged rows, the most suspect and a sample of the others`);
  if (kept < data.counts.keep) parts.push(`${counted(kept)} of ${counted(data.counts.keep)} kept rows`);
  if (!parts.length) return "";
  return ` This file holds ${parts.join(", and ")}; labelclean review shows all.`;
}

// A picture drawn small, or a sign that there is none.
function pictureOf(source, words, kind) {
  if (!source) return el("span", { class: "nopicture " + (kind || "") }, "no picture");
  const picture = el("img", { alt: words, loading: "lazy", decoding: "async", class: kind || null });
  // A picture of few pixels is shown with sharp ones: blurred, it would look like something it is not.
  picture.addEventListener("load", () => picture.classList.toggle("tiny", picture.naturalWidth <= 40));
  picture.src = source;
  return picture;
}

function decisionWords(row) {
  if (!row.decision) return null;
  const what = DECIDED_WORDS[row.decision.decision] || row.decision.decision;
  return el("span", { class: "decided d-" + row.decision.decision }, what, ...(row.decision.label !== null && row.decision.label !== undefined ? [": ", named(shortened(String(row.decision.label), 20))] : []));
}

function cardOf(row) {
  return el("div", { role: "option", id: "row-" + row.row, class: "card k-" + row.action, "aria-selected": "false" },
    el("span", { class: "frame" }, pictureOf(row.picture, "")),
    el("span", { class: "pair" }, named(shortened(row.given, 28)), row.suggested === row.given ? null : [" → ", el("b", null, named(shortened(row.suggested, 28)))]),
    el("span", { class: "foot" }, el("span", { class: "action" }, row.action), el("span", { class: "score" }, row.p_error === null ? "" : shareText(row.p_error))),
    decisionWords(row));
}
