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
    ...(data.lists.length ? [field("list", select("finding", [["", "wrong labels"], ...data.lists.map(([name, rows]) => [name, `${name} ${counted(rows)}`])]))] : []),
    field("decided", select("decided", [["", "all"], ["no", "not yet"], ["yes", "decided"]])),
    field("order", select("order", [["rank", "most suspect first"], ["informative", "most informative first"], ["row", "row number"]])),
    el("button", { type: "button", id: "start-over", onclick: () => setFilters({}, changed) }, "Reset"));
  let waiting = 0;
  form.addEventListener("input", (event) => {
    if (event.target.hasAttribute("data-adds")) return;
    if (served && event.target.name === "order" && event.target.value === "informative") { askAboutAll(changed); return; }
    // What a list holds is mostly labelled well, so rows of every action are shown.
    if (event.target.name === "finding") { showList(event.target.value, changed); return; }
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

function showList(finding, changed) {
  setFilters(finding ? { finding, action: CHOICES } : {}, changed);
  const found = data.lists.find(([name]) => name === finding);
  say(found ? `List of ${found[0]}: ${found[2]}.` : "Rows whose labels look wrong.");
}

// The next list of findings, after the last one wrong labels again.
function nextList(changed) {
  const names = ["", ...data.lists.map(([name]) => name)];
  if (names.length === 1) { say("Nothing was found beside wrong labels."); return; }
  showList(names[(names.indexOf(byId("finding").value) + 1) % names.length], changed);
}

// Set all filters at once; what is not named goes back to how the page began.
function setFilters({ given = [], suggested = [], action = FLAGGED, order = "rank", decided = "", finding = "" }, changed) {
  const form = byId("filters");
  form.reset();
  for (const box of form.querySelectorAll("input[name=action]")) box.checked = action.includes(box.value);
  byId("order").value = order;
  byId("decided").value = decided;
  if (byId("finding")) byId("finding").value = finding;
  Object.assign(chosen, { given, suggested });
  for (const name of ["given", "suggested"]) drawChosen(name, changed);
  changed();
}

function readFilters() {
  const form = new FormData(byId("filters"));
  const share = (name) => { const text = form.get(name); return text === "" || Number.isNaN(Number(text)) ? null : Number(text) / 100; };
  return { q: form.get("q").trim(), action: form.getAll("action"), given: [...chosen.given], suggested: [...chosen.suggested], min: share("min"), max: share("max"), decided: form.get("decided"), finding: form.get("finding") || "", order: form.get("order") };
}
