// Small makers of elements. Text is always set as text: no name can become markup.
const data = JSON.parse(document.getElementById("labelclean-data").textContent);
const served = data.mode === "served";
const byId = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// A label or path may hold marks that turn the writing around; <bdi> keeps them to itself.
const named = (text, kind) => el("bdi", { class: kind || "name" }, text);

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Say which characters of a name cannot be seen; null where all can.
function hiddenMarks(text) {
  const found = [...new Set(text.match(HIDDEN) || [])];
  if (!found.length) return null;
  const codes = found.map((mark) => "U+" + mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
  return el("span", { class: "marks" }, "holds hidden characters: " + codes.join(", "));
}

function shortened(text, most) {
  const letters = Array.from(text.replace(HIDDEN, "·"));
  return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "…";
}

const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %");
const counted = (value) => value.toLocaleString("en");

function scrolling(label, ...children) {
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, ...children);
}

let saidAt = 0;
function say(text) {
  byId("says").textContent = text;
  const now = ++saidAt;
  setTimeout(() => { if (now === saidAt) byId("says").textContent = ""; }, 4000);
}
