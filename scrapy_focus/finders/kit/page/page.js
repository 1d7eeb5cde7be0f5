"use strict";
// Shows the list of files in parts: the page may have a hundred thousand files, and a browser shows only a part of it.
(() => {
  const {about, noun, texts, rows} = JSON.parse(document.getElementById("data").textContent);
  const [NAME, FOLDER, END, SIZE, KIND, PLACE, PAGE, ANCHOR, STATE, STORED, FILE, CUT] = Array(12).keys();
  const rated = document.querySelector(".files thead th[data-by=relevance]");
  const [RELEVANCE, WORDS] = [CUT + 1, CUT + 2], LINKS = CUT + (rated ? 3 : 1);
  const FIRST = 10, STEP = 100, nouns = noun.replace(/y$/, "ie") + "s";
  const body = document.querySelector(".files tbody"), more = document.querySelector(".more");
  const [search, kind, state] = ["search", "kind", "state"].map(id => document.getElementById(id));
  const hits = document.getElementById("hits");
  const url = row => texts[row[FOLDER]] + (row[END] === 0 ? row[NAME] : row[END]);
  const words = new Map();
  let chosen = rows, shown = 0, order = rated ? {by: "relevance", sign: -1} : null;

  const haystack = row => {
    if (!words.has(row)) {
      words.set(row, [row[NAME], url(row), texts[row[PAGE]], texts[row[ANCHOR]]].join("\n").toLowerCase());
    }
    return words.get(row);
  };
  const make = (parent, tag, text, kind) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (kind) element.className = kind;
    parent.append(element);
    return element;
  };
  const lead = (parent, text, to, kind) => {
    const element = make(parent, to ? "a" : "span", text, kind);
    element.dir = "auto";
    if (to) {
      element.href = to;
      element.rel = "noreferrer";
    }
    return element;
  };
  const web = text => /^https?:\/\//.test(text) ? text : "";
  const short = text => {
    const bare = text.replace(/^https?:\/\//, "");
    return bare.length > 200 ? bare.slice(0, 197) + "..." : bare;
  };
  const size = bytes => {
    if (about === "topic") return bytes + " %"; // of relevance
    if (about === "structured") return bytes.toLocaleString("en"); // values of an entity
    if (about === "importance") {
      return (bytes / 1000).toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2});
    }
    let unit = 0;
    while (bytes >= 999.5 && unit < 4) { bytes /= 1000; unit++; }
    return bytes.toLocaleString("en", {minimumFractionDigits: +(unit > 0), maximumFractionDigits: +(unit > 0)}) + " " +
      ["B", "kB", "MB", "GB", "TB"][unit];
  };
  const show = row => {
    const line = document.createElement("tr"), head = make(line, "th", "");
    head.scope = "row";
    const stored = texts[row[STORED]] + (row[FILE] === 0 ? row[NAME] : row[FILE]);
    const local = texts[row[STORED]] ? stored.split("/").map(encodeURIComponent).join("/") : "";
    const remote = web(url(row));
    lead(head, row[NAME], local);
    if (remote) lead(head, short(remote), remote, "url");
    make(line, "td", texts[row[KIND]]);
    make(line, "td", size(row[SIZE]) + (row[CUT] ? ", cut" : ""), "size");
    if (rated) {
      const cell = make(line, "td", "", "relevance");
      if (row[RELEVANCE] >= 0) {
        const bar = make(cell, "meter", "");
        [bar.min, bar.max, bar.value] = [0, 100, row[RELEVANCE]];
        bar.setAttribute("aria-hidden", "true");
        cell.append(" " + row[RELEVANCE] + " %");
      }
      if (texts[row[WORDS]]) lead(cell, texts[row[WORDS]], "", "on");
    }
    if (state) {
      const said = texts[row[STATE]];
      make(make(line, "td", ""), "span", said, "state " + (/^[a-z]+$/.test(said) ? said : ""));
    }
    lead(make(line, "td", "", "place"), texts[row[PLACE]], "");
    const page = web(texts[row[PAGE]]), cell = make(line, "td", "", "far");
    lead(cell, texts[row[ANCHOR]] || (page ? "a link" : ""), "");
    if (page) {
      cell.append(" ");
      lead(cell, "on ", "", "on").append(lead(cell, short(page), page));
    }
    for (let at = LINKS; at < row.length; at += 2) {
      const also = make(cell, "span", "", "also"), other = web(texts[row[at]]);
      lead(also, texts[row[at + 1]] || "a link", "");
      if (other) {
        also.append(" ");
        lead(also, "on ", "", "on").append(lead(also, short(other), other));
      }
    }
    return line;
  };
  const fill = () => {
    const until = Math.min(chosen.length, shown + (shown ? STEP : FIRST));
    body.append(...chosen.slice(shown, until).map(show));
    shown = until;
    more.hidden = shown >= chosen.length;
    hits.textContent = chosen.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " " + nouns;
  };
  const value = text => /^[\d,]+( pages?)?$/.test(text) ? parseInt(text.replaceAll(",", ""), 10) : text;
  const key = {
    name: row => row[NAME].toLowerCase(), kind: row => value(texts[row[KIND]]), size: row => row[SIZE],
    relevance: row => row[RELEVANCE],
    state: row => texts[row[STATE]], place: row => value(texts[row[PLACE]]), page: row => texts[row[PAGE]],
  };
  const choose = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = rows.filter(row =>
      (!(kind && kind.value) || texts[row[KIND]] === kind.value) && (!(state && state.value) || texts[row[STATE]] === state.value) &&
      (!wanted.length || wanted.every(word => haystack(row).includes(word))));
    if (order) {
      const keyed = chosen.map(row => [key[order.by](row), row]);
      keyed.sort(([a], [b]) => order.sign * (a < b ? -1 : +(a > b)));
      chosen = keyed.map(([, row]) => row);
    }
    body.replaceChildren();
    shown = 0;
    fill();
  };
  const sort = head => {
    const by = head.dataset.by, again = order && order.by === by;
    order = {by, sign: again ? -order.sign : by === "size" || by === "relevance" || (by === "place" && about === "importance") ? -1 : 1};
    for (const other of document.querySelectorAll(".files thead th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
    choose();
  };
  for (const head of document.querySelectorAll(".files thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(choose, 150); });
  for (const select of [kind, state]) if (select) select.addEventListener("change", choose);
  more.addEventListener("click", fill);
  document.querySelector(".controls").hidden = false;
  choose();
})();
