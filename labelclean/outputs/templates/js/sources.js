// Where rows come from and decisions go: this file and the browser's memory, or the review server.
const FLAGGED = ["relabel", "review", "drop"];

function matches(row, query) {
  if (query.action.length && !query.action.includes(row.action)) return false;
  if (query.given.length && !query.given.includes(row.given)) return false;
  if (query.suggested.length && !query.suggested.includes(row.suggested)) return false;
  if (query.min !== null && !(row.p_error >= query.min)) return false;
  if (query.max !== null && !(row.p_error <= query.max)) return false;
  if (query.decided && (query.decided === "yes") !== Boolean(row.decision)) return false;
  if (query.finding && !LISTS[query.finding].has(row)) return false;
  if (!query.q) return true;
  const text = [row.path, row.sample_id, row.given, row.suggested, row.reason, "row " + row.row].join("\n").toLowerCase();
  return text.includes(query.q.toLowerCase());
}

// Findings beside wrong labels: which rows are on a list, and in which order they are looked at.
const inGroups = (a, b) => a.group - b.group || a.row - b.row;
const LISTS = {
  outliers: { has: (row) => row.kind === "outlier", order: (a, b) => (b.p_outlier || 0) - (a.p_outlier || 0) },
  duplicates: { has: (row) => row.group !== null, order: inGroups },
  leaks: { has: (row) => row.leaks_to !== null, order: inGroups },
};

const ORDERS = {
  rank: (a, b) => a.rank - b.rank,
  row: (a, b) => a.row - b.row,
  informative: (a, b) => doubt(a) - doubt(b) || a.rank - b.rank,
};
const doubt = (row) => (row.p_error === null ? 2 : Math.abs(row.p_error - 0.5));

class FileSource {
  constructor() {
    this.key = "labelclean/" + data.digest;
    this.rows = new Map(data.rows.map((row) => [row.row, row]));
    for (const row of this.rows.values()) {
      row.picture = row.picture || data.pictures[row.row] || null;
      for (const near of [...row.neighbours, ...row.copies]) near.picture = near.picture || data.pictures[near.row] || null;
    }
    this.log = this.remembered();
    this.log.forEach((line) => this.apply(line));
  }

  // What was decided in this browser before; a damaged or foreign memory counts as none.
  remembered() {
    try {
      const lines = JSON.parse(localStorage.getItem(this.key) || "[]");
      return lines.filter((line) => this.rows.get(line.row)?.sample_id === line.sample_id);
    } catch {
      return [];
    }
  }

  remember() {
    try {
      localStorage.setItem(this.key, JSON.stringify(this.log));
    } catch {
      say("This browser keeps nothing for files: download the decisions before you close the page.");
    }
  }

  apply(line) {
    const row = this.rows.get(line.row);
    if (row) row.decision = { decision: line.decision, label: line.label };
  }

  async list(query, offset, limit) {
    const found = [...this.rows.values()].filter((row) => matches(row, query)).sort(query.finding && query.order === "rank" ? LISTS[query.finding].order : ORDERS[query.order]);
    return { total: found.length, rows: found.slice(offset, offset + limit) };
  }

  async decide(row, decision, label) {
    const line = { row: row.row, sample_id: row.sample_id, decision, label, time: new Date().toISOString() };
    this.log.push(line);
    this.apply(line);
    this.remember();
    return this.state();
  }

  async undo() {
    const line = this.log.pop();
    if (!line) return { undone: null, state: await this.state() };
    this.rows.get(line.row).decision = null;
    this.log.filter((earlier) => earlier.row === line.row).forEach((earlier) => this.apply(earlier));
    this.remember();
    return { undone: line, state: await this.state() };
  }

  async state() {
    const decided = [...this.rows.values()].filter((row) => row.decision).length;
    return { decided, to_review: this.rows.size - decided, estimate: null };
  }

  text() {
    return this.log.map((line) => JSON.stringify(line) + "\n").join("");
  }
}

class ServedSource {
  async ask(path, body) {
    const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, { ...options, cache: "no-store" });
    if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
    return answer.json();
  }

  list(query, offset, limit) {
    const words = new URLSearchParams({ offset, limit, order: query.order });
    for (const name of ["given", "suggested", "action"]) query[name].forEach((value) => words.append(name, value));
    for (const name of ["min", "max", "q", "decided", "finding"]) if (query[name] !== null && query[name] !== "") words.set(name, query[name]);
    return this.ask("api/rows?" + words);
  }

  async decide(row, decision, label) {
    const answer = await this.ask("api/decisions", { row: row.row, sample_id: row.sample_id, decision, label });
    if (!answer.saved) throw new Error("the server did not save it");
    return answer.state;
  }

  undo() { return this.ask("api/undo", {}); }

  state() { return this.ask("api/state"); }
}
