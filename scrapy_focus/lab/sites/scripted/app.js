// What the pages of the synthetic scripted site run; SITE is put in where the bundle is made.
"use strict";
const SITE = {/* SITE */};
const root = document.getElementById("root");

const item = (href, text) => `<li><a href="${href}">${text}</a></li>`;

// The key that some APIs want to see: FNV-1a of what is asked for.
function key(path) {
  let hash = 0x811c9dc5;
  for (const letter of SITE.salt + path) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

async function get(path, headers = {}) {
  return (await fetch(path, {headers})).json();
}

async function post(path, body) {
  const headers = {"Content-Type": "application/json"};
  return (await fetch(path, {method: "POST", headers, body: JSON.stringify(body)})).json();
}

// Each make: how it is asked for a list, what the address of the next list says, and how it is asked for a dataset.
const MAKES = {
  next: {
    list: (api, at) => get(`${api.base}/datasets?page=${at.get("page")}`),
    next: (api, at, data) => data.next && "page=" + new URL(data.next, location).searchParams.get("page"),
    items: "results",
  },
  pages: {
    list: (api, at) => get(`${api.base}/datasets?page=${at.get("page")}&size=${api.size}`),
    next: (api, at, data) => data.page < data.pages && `page=${data.page + 1}`,
    items: "results",
  },
  offset: {
    list: (api, at) => get(`${api.base}/datasets?offset=${at.get("from")}&limit=${api.size}`),
    next: (api, at, data) => data.offset + data.limit < data.total && `from=${data.offset + data.limit}`,
    items: "items",
  },
  cursor: {
    list: (api, at) => get(`${api.base}/datasets` + (at.get("after") ? `?cursor=${at.get("after")}` : "")),
    next: (api, at, data) => data.cursor && `after=${data.cursor}`,
    items: "data",
  },
  post: {
    list: (api, at) => post(`${api.base}/search`, {page: Number(at.get("page")), size: api.size}),
    next: (api, at, data) => data.page < data.pages && `page=${data.page + 1}`,
    items: "hits",
    dataset: (api, id) => post(`${api.base}/dataset`, {id}),
  },
  endless: {
    list: (api, at) => get(`${api.base}/datasets?page=${at.get("page")}`),
    next: (api, at) => Number(at.get("page")) < api.pages && `page=${Number(at.get("page")) + 1}`,
    items: "results",
  },
  key: {
    list: (api, at) => keyed(`${api.base}/datasets?page=${at.get("page")}`),
    next: (api, at, data) => data.page < data.pages && `page=${data.page + 1}`,
    items: "results",
    dataset: (api, id) => keyed(`${api.base}/datasets/${id}`),
  },
};
const keyed = (path) => get(path, {"X-Key": key(path)});

// Each shape: what the links of a list and of a dataset are made of.
const SHAPES = {
  ids: {
    of: (name, each) => item(`/app/${name}/dataset/${each.id}`, each.title),
    files: (name, data) => data.resources.map((each) => item(each.url, `Download ${each.format}`)),
  },
  urls: {
    of: (name, each) => item(each.url, each.title),
    files: (name, data) => data.resources.map((each) => item(each.url, `Download ${each.format}`)),
  },
  values: {
    of: (name, each) => item(`/app/${name}/dataset/${each.slug}`, each.label),
    files: (name, data) => data.parts.map((each) => item(`/files/${name}/${data.slug}-${each}.csv`, `Part ${each}`)),
  },
};

async function app() {
  const [, , name, , id] = location.pathname.split("/");
  const api = {base: `/api/${name}`, ...SITE.apis[name]};
  const make = MAKES[api.make], shape = SHAPES[api.shape];
  const nav = `<nav>${SITE.nav.map(([href, text]) => `<a href="${href}">${text}</a>`).join("")}</nav>`;
  if (id === undefined) {
    const at = new URLSearchParams(location.search);
    const data = await make.list(api, at);
    const next = make.next(api, at, data);
    root.innerHTML = `${nav}<h1>${name}</h1>` +
      `<ul class="results">${data[make.items].map((each) => shape.of(name, each)).join("")}</ul>` +
      (next ? `<a class="next" href="${location.pathname}?${next}">Next page</a>` : "");
  } else {
    const data = await (make.dataset ? make.dataset(api, id) : get(`${api.base}/datasets/${id}`));
    root.innerHTML = `${nav}<h1>${data.title ?? data.label}</h1>` +
      `<ul class="resources">${shape.files(name, data).join("")}</ul>`;
  }
}

// The rest of a collection comes when a button is clicked, or when its end is scrolled to.
function collection(list) {
  const button = document.getElementById("more"), end = document.getElementById("end");
  let offset = list.children.length, busy = false, seen = null;
  const more = async () => {
    if (busy) return;
    busy = true;
    const data = await get(`/api/more?collection=${list.dataset.collection}&offset=${offset}`);
    list.insertAdjacentHTML("beforeend", data.items.map((each) => item(each.href, each.label)).join(""));
    offset += data.items.length;
    busy = false;
    if (data.done) {
      button?.remove();
      seen?.disconnect();
    } else if (seen) {
      seen.unobserve(end);  // an observer speaks when something changes, and the end may still be in sight
      seen.observe(end);
    }
  };
  if (button) button.onclick = more;
  if (end) {
    seen = new IntersectionObserver((entries) => entries.at(-1).isIntersecting && more());
    seen.observe(end);
  }
}

function download(button) {
  button.onclick = async () => {
    if (button.dataset.kind === "url") {
      location.href = `/export?id=${button.dataset.export}`;
      return;
    }
    const rows = await get(`/api/rows?id=${button.dataset.export}`);
    const text = rows.map((row) => row.join(",") + "\n").join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
    link.download = `export-${button.dataset.export}.csv`;
    link.click();
  };
}

// What news pages get: nothing that anybody needs.
function article(time) {
  time.textContent = "read by you on " + new Date().toDateString();
  document.documentElement.className = "scripted";
}

navigator.sendBeacon("/beacon", location.pathname);
for (const [selector, begin] of [["#root", app], ["ul.more", collection], ["#export", download], ["time", article]]) {
  const element = document.querySelector(selector);
  if (element) begin(element);
}
