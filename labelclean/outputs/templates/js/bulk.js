// What accepting a row decides. A suspect that no other label fits has nothing to accept: taken for
// a confirmation, it would call right what is likely wrong.
function accepted(row) {
  if (row.suggested !== row.given) return ["relabel", row.suggested];
  return row.action === "keep" ? ["confirm", null] : null;
}

// Several rows at once: mark them, then accept, confirm or drop all of them in one go.
class Bulk {
  constructor(page) {
    Object.assign(this, { page, marked: new Map() });
    const button = (id, words, act) => el("button", { type: "button", id, onclick: act }, words);
    this.count = el("span", { class: "quiet", role: "status" });
    this.work = [
      button("bulk-accept", "Accept suggestions", () => this.decide(accepted)),
      button("bulk-confirm", "Confirm labels", () => this.decide(() => ["confirm", null])),
      button("bulk-drop", "Drop", () => this.decide(() => ["drop", null])),
      button("bulk-none", "Unselect", () => this.clear()),
    ];
    byId("bulk").append(button("bulk-all", "Select all loaded", () => this.all()), this.count, ...this.work);
    this.tell();
  }

  static can(row) { return row && row.action !== "unreadable" && !row.decision; }

  toggle(row) {
    if (!Bulk.can(row)) { say("A row that is decided or unreadable cannot be selected."); return; }
    this.marked.has(row.row) ? this.marked.delete(row.row) : this.marked.set(row.row, row);
    this.tell();
  }

  all() {
    this.page.gallery.rows.filter(Bulk.can).forEach((row) => this.marked.set(row.row, row));
    this.tell();
  }

  clear() { this.marked.clear(); this.tell(); }

  // One after the other, each saved before the next: what is on disk is what the page shows.
  decide(choose) {
    if (!this.marked.size || document.body.dataset.saving) return;
    const page = this.page, chosen = [...this.marked.values()], rows = chosen.filter(choose);
    const left = chosen.length - rows.length;
    document.body.dataset.saving = "yes";
    page.pending = page.pending.then(() => page.guarded(async () => {
      let done = 0, state = null;
      try {
        for (const row of rows) {
          const [decision, label] = choose(row);
          state = await page.source.decide(row, decision, label);
          row.decision = { decision, label };
          this.marked.delete(row.row);
          page.gallery.redraw(row);
          done += 1;
        }
      } finally {
        if (done) page.steps.push(done);
        page.tell(state);
        this.tell();
      }
      say(`${counted(done)} rows decided; z undoes them together.` + (left ? ` ${counted(left)} without a suggestion stay selected.` : ""));
    })).finally(() => { delete document.body.dataset.saving; page.gallery.select(page.gallery.at, false); });
  }

  tell() {
    for (const card of document.querySelectorAll("#gallery .marked")) card.classList.remove("marked");
    for (const row of this.marked.keys()) byId("row-" + row)?.classList.add("marked");
    this.count.textContent = this.marked.size ? `${counted(this.marked.size)} selected` : "None selected (x, or Ctrl and click)";
    this.work.forEach((button) => { button.disabled = !this.marked.size; });
  }
}
