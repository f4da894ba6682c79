// The keyboard: one list of what each key does, which is also what the help shows.
function buildKeys(page) {
  const list = [
    [["j", "ArrowRight"], "next row", () => page.gallery.step(1)],
    [["k", "ArrowLeft"], "previous row", () => page.gallery.step(-1)],
    [["c"], "confirm the given label", () => page.decide("confirm", null)],
    [["a"], "accept the suggestion", () => page.accept()],
    [["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"], "choose the class with this number", (key) => page.choose(key)],
    [["l"], "choose a class by its letters", () => byId("class-choice")?.focus()],
    [["d"], "drop the row", () => page.decide("drop", null)],
    [["u"], "unsure", () => page.decide("unsure", null)],
    [["n"], "none of these labels", () => page.decide("none_of_these", null)],
    [["z"], "undo the last decision, or the last several at once (also Ctrl+Z)", () => page.undo()],
    [["x"], "select the row, for several at once (also Ctrl and click)", () => page.bulk.toggle(page.gallery.current)],
    [["o"], "open the whole picture", () => page.gallery.current && openFull(page.gallery.current)],
    [["f"], "next list: outliers, duplicates, leaks, wrong labels", () => nextList(() => page.refresh())],
    [["/"], "search", () => byId("search").focus()],
    [["?"], "show the keys", () => byId("keys").showModal()],
  ];
  const shown = (keys) => (keys.length > 2 ? ["1", "9", "0"] : keys).map((key) => ({ ArrowRight: "→", ArrowLeft: "←" })[key] || key);
  byId("keys").querySelector("dl").append(...list.map(([keys, words]) => el("div", null, el("dt", null, shown(keys).flatMap((key, at) => [at ? (keys.length > 2 && at === 1 ? " to " : ", ") : "", el("kbd", null, key)])), el("dd", null, words))),
    el("div", null, el("dt", null, el("kbd", null, "Esc")), el("dd", null, "leave a field or a dialog")));
  const actions = new Map(list.flatMap(([keys, , act]) => keys.map((key) => [key, act])));
  document.addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input, select, textarea");
    if (event.key === "Escape" && field) { field.blur(); byId("gallery").focus({ preventScroll: true }); return; }
    if (document.querySelector("dialog[open]")) return;
    const typing = field && field.type !== "checkbox";
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) { event.preventDefault(); page.undo(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const inTabs = event.target.closest?.("[role=tablist]");
    const inGallery = event.target.id === "gallery";
    const key = inGallery ? { ArrowDown: "ArrowRight", ArrowUp: "ArrowLeft" }[event.key] || event.key : event.key;
    if (inTabs && key.startsWith("Arrow")) { event.preventDefault(); page.showPart(page.shown === "overview" ? "suspects" : "overview", true); return; }
    const act = actions.get(key.length === 1 ? key.toLowerCase() : key);
    if (!act || (page.shown !== "suspects" && key !== "?")) return;
    event.preventDefault();
    act(key);
  });
}
