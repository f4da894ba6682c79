// The filter bar: several classes at once, actions, score, search, order.
const CHOICES = ["relabel", "review", "drop", "keep", "unreadable"].filter((name) => data.counts[name]);
const chosen = { given: [], suggested: [] };

function buildFilters(changed) {
  const form = byId("filters");
  const names = el("datalist", { id: "class-names" }, data.classes.map((name) => el("option", { value: name })));
  const field = (label, control, kind) => el("label", { class: "field " + (kind || "") }, el("span", null, label), control);
  const search = el("input", { type: "search", id: "search", name: "q", placeholder: "path, label, id", autocomplete: "off" });
  const group = (kind, words, ...inside) => el("div", { class: "field", role: "group", "aria-label": words }, el("span", { "aria-hidden": "true" }, words), el("div", { class: kind }, ...inside));
  const actions = group("actions", "action", CHOICES.map((name) => el("label", { class: "chip k-" + name },
    el("input", { type: "checkbox", name: "action", value: name, checked: FLAGGED.includes(name) }), `${name} ${counted(data.counts[name])}`)));
  const number = (name) => el("input", { type: "number", name, min: "0", max: "100", step: "any", inputmode: "decimal", placeholder: name === "min" ? "0" : "100" });
  const select = (name, options) => el("select", { name, id: name }, options.map(([value, text]) => el("option", { value }, text)));
  const fold = el("button", { type: "button", class: "fold", "aria-expanded": "false", onclick: () => fold.setAttribute("aria-expanded", String(form.classList.toggle("open"))) }, "Filters");
  form.append(names, field("search", search, "search"), fold, actions, classField("given", changed), classField("suggested", changed),
    group("range", "p_error, %", el("label", null, el("span", { class: "hidden" }, "from"), number("min")), el("span", { "aria-hidden": "true" }, "to"), el("label", null, el("span", { class: "hidden" }, "to"), number("max"))),
    field("decided", select("decided", [["", "all"], ["no", "not yet"], ["yes", "decided"]])),
    field("order", select("order", [["rank", "most suspect first"], ["informative", "most informative first"], ["row", "row number"]])),
    el("button", { type: "button", id: "start-over", onclick: () => setFilters({}, changed) }, "Reset"));
  let waiting = 0;
  form.addEventListener("input", (event) => {
    if (event.target.hasAttribute("data-adds")) return;
    if (served && event.target.name === "order" && event.target.value === "informative") { askAboutAll(changed); return; }
    clearTimeout(waiting);
    waiting = setTimeout(changed, served && event.target.type === "search" ? 200 : 0);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
}

// An input that offers the classes; each one taken becomes a chip that can be removed again.
function classField(name, changed) {
  const input = el("input", { list: "class-names", "data-adds": name, autocomplete: "off", placeholder: "any" });
  const take = () => {
    if (!data.classes.includes(input.value)) return;
    if (!chosen[name].includes(input.value)) chosen[name].push(input.value);
    input.value = "";
    drawChosen(name, changed);
    changed();
  };
  input.addEventListener("input", take);
  input.addEventListener("change", take);
  return el("div", { class: "field classes" }, el("label", null, el("span", null, name), input), el("div", { id: "chosen-" + name, class: "chosen" }));
}

function drawChosen(name, changed) {
  byId("chosen-" + name).replaceChildren(...chosen[name].map((label) => el("button", { type: "button", class: "chip", "aria-label": `remove ${name} ${label}`, onclick: () => {
    chosen[name] = chosen[name].filter((other) => other !== label);
    drawChosen(name, changed);
    changed();
  } }, named(shortened(label, 24)), " ×")));
}

// Estimates rest on a sample of all rows, kept ones too: nothing may be filtered out of it.
function askAboutAll(changed) {
  setFilters({ action: CHOICES.filter((name) => name !== "unreadable"), order: "informative", decided: "no" }, changed);
  say("Rows of every kind are asked about: what is known of the rest depends on it.");
}

// Set all filters at once; what is not named goes back to how the page began.
function setFilters({ given = [], suggested = [], action = FLAGGED, order = "rank", decided = "" }, changed) {
  const form = byId("filters");
  form.reset();
  for (const box of form.querySelectorAll("input[name=action]")) box.checked = action.includes(box.value);
  byId("order").value = order;
  byId("decided").value = decided;
  Object.assign(chosen, { given, suggested });
  for (const name of ["given", "suggested"]) drawChosen(name, changed);
  changed();
}

function readFilters() {
  const form = new FormData(byId("filters"));
  const share = (name) => { const text = form.get(name); return text === "" || Number.isNaN(Number(text)) ? null : Number(text) / 100; };
  return { q: form.get("q").trim(), action: form.getAll("action"), given: [...chosen.given], suggested: [...chosen.suggested], min: share("min"), max: share("max"), decided: form.get("decided"), order: form.get("order") };
}
