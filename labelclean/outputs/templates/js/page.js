// The page as a whole: its two parts, the theme, and what happens when somebody decides.
const page = {
  source: served ? new ServedSource() : new FileSource(),
  gallery: null,
  bulk: null,
  // How many rows each decision of this visit was about; what came before is undone one by one.
  steps: [],
  shown: null,
  pending: Promise.resolve(),

  showPart(name, focus) {
    this.shown = name;
    for (const part of ["overview", "suspects"]) {
      byId(part).classList.toggle("away", part !== name);
      byId("tab-" + part).setAttribute("aria-selected", String(part === name));
      byId("tab-" + part).tabIndex = part === name ? 0 : -1;
    }
    if (focus) byId("tab-" + name).focus();
    scrollTo(0, 0);
  },

  async guarded(work) {
    try {
      return await work();
    } catch (error) {
      say("Not done: " + error.message);
      byId("says").classList.add("fault");
      setTimeout(() => byId("says").classList.remove("fault"), 4000);
      return null;
    }
  },

  refresh() {
    this.bulk.clear();
    return this.guarded(() => this.gallery.show(readFilters()));
  },

  // A key pressed while a decision is being saved decides nothing: its row is about to change.
  decide(decision, label) {
    const row = this.gallery.current;
    if (!row || row.action === "unreadable" || document.body.dataset.saving) return;
    const at = this.gallery.at;
    document.body.dataset.saving = "yes";
    this.pending = this.pending.then(() => this.guarded(async () => {
      const state = await this.source.decide(row, decision, label);
      row.decision = { decision, label };
      this.steps.push(1);
      this.bulk.marked.delete(row.row);
      this.bulk.tell();
      this.gallery.redraw(row);
      this.tell(state);
      if (this.gallery.at === at) await this.next(at);
    })).finally(() => { delete document.body.dataset.saving; });
  },

  async next(at) {
    if (at + 1 < this.gallery.total) await this.gallery.step(1);
    else { this.gallery.select(at); say("That was the last row that matches."); }
  },

  accept() {
    const row = this.gallery.current;
    const way = row && accepted(row);
    if (way) this.decide(...way);
    else if (row) say("No other label fits this row, so there is nothing to accept: confirm it, choose a label or drop it.");
  },

  choose(key) {
    const row = this.gallery.current;
    const found = row && quickClasses(row).find(([own]) => own === key);
    if (found) chooseClass(row, found[1], (decision, label) => this.decide(decision, label));
  },

  undo() {
    this.pending = this.pending.then(() => this.guarded(async () => {
      const several = this.steps.pop() || 1;
      for (let turn = 0; turn < several; turn += 1) if (!(await this.undoOne())) return;
      if (several > 1) say(`Undone: ${counted(several)} decisions.`);
    }));
  },

  async undoOne() {
    const { undone, state } = await this.source.undo();
    if (!undone) { say("There is nothing to undo."); return false; }
    const at = this.gallery.rows.findIndex((row) => row.row === undone.row);
    if (at >= 0) {
      const row = this.gallery.rows[at];
      if (served) row.decision = null;
      this.gallery.redraw(row);
      this.gallery.select(at);
    }
    say(`Undone: ${undone.decision} of row ${undone.row}.`);
    this.tell(state);
    return true;
  },

  tell(state) {
    if (!state) return;
    const before = this.state?.estimate?.answers;
    this.state = state;
    byId("progress").textContent = served ? `${counted(state.decided)} decided, ${counted(state.to_review)} to review` : `${counted(state.decided)} decided`;
    byId("download").disabled = !state.decided;
    const estimate = state.estimate;
    byId("estimate").hidden = !estimate;
    if (!estimate) return;
    byId("estimate").classList.toggle("enough", estimate.enough);
    byId("estimate").textContent = estimate.message;
    // New answers change which rows say most about the rest.
    if (before !== undefined && before !== estimate.answers && this.gallery.query?.order === "informative") this.refresh();
  },
};

function pick(given, suggested) {
  page.showPart("suspects");
  setFilters({ given: [given], suggested: suggested === null ? [] : [suggested], action: given === suggested ? ["keep"] : suggested === null ? FLAGGED : [...FLAGGED, "keep"] }, () => page.refresh());
}

function switchTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
  try { localStorage.setItem("labelclean/theme", document.documentElement.dataset.theme); } catch { /* it lasts as long as the page */ }
}

function setTheme(name) {
  if (name === "dark" || name === "light") document.documentElement.dataset.theme = name;
}

function download() {
  const link = el("a", { href: URL.createObjectURL(new Blob([page.source.text()], { type: "application/x-ndjson" })), download: "decisions.jsonl" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

try { setTheme(localStorage.getItem("labelclean/theme")); } catch { /* the system's choice counts */ }
page.gallery = new Gallery(page.source, (row) => drawDetail(row, (decision, label) => page.decide(decision, label)), (row) => page.bulk.toggle(row));
page.bulk = new Bulk(page);
byId("theme").addEventListener("click", switchTheme);
byId("show-keys").addEventListener("click", () => byId("keys").showModal());
byId("download").addEventListener("click", download);
byId("download").hidden = served;
for (const name of ["overview", "suspects"]) byId("tab-" + name).addEventListener("click", () => {
  page.showPart(name);
  // The keys are for the rows now, not for the tabs.
  if (name === "suspects") byId("gallery").focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", () => { page.showPart("suspects"); byId("gallery").focus(); });
buildFilters(() => page.refresh());
buildKeys(page);
drawOverview(pick);
for (const button of document.querySelectorAll("[data-list]")) button.addEventListener("click", () => {
  page.showPart("suspects");
  showList(button.dataset.list, () => page.refresh());
  byId("gallery").focus({ preventScroll: true });
});
page.showPart(served || location.hash === "#suspects" ? "suspects" : "overview");
page.refresh().then(() => { document.body.dataset.ready = String(Math.round(performance.now())); });
if (data.progress) page.tell(data.progress);
else page.guarded(async () => page.tell(await page.source.state()));
