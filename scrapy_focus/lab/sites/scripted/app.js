// What the pages of the synthetic scripted site run; SITE is put in where the bundle is made.
"use strict";
const SITE = {/* SITE */};
const root = document.getElementById("root");

const item = (href, text) => `<li><a href="${href}">${text}</a></li>`;

async function get(path) {
  return (await fetch(path)).json();
}

// Each make: how it is asked for a list, and what the address of the next list says.
const MAKES = {
  next: {
    list: (api, at) => get(`${api.base}/datasets?page=${at.get("page")}`),
    next: (api, at, data) => data.next && "page=" + new URL(data.next, location).searchParams.get("page"),
  },
  pages: {
    list: (api, at) => get(`${api.base}/datasets?page=${at.get("page")}&size=${api.size}`),
    next: (api, at, data) => data.page < data.pages && `page=${data.page + 1}`,
  },
};

// Each shape: what the links of a list are made of.
const SHAPES = {
  ids: (name, each) => item(`/app/${name}/dataset/${each.id}`, each.title),
  urls: (name, each) => item(each.url, each.title),
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
      `<ul class="results">${data.results.map((each) => shape(name, each)).join("")}</ul>` +
      (next ? `<a class="next" href="${location.pathname}?${next}">Next page</a>` : "");
  } else {
    const data = await get(`${api.base}/datasets/${id}`);
    root.innerHTML = `${nav}<h1>${data.title}</h1>` +
      `<ul class="resources">${data.resources.map((each) => item(each.url, `Download ${each.format}`)).join("")}</ul>`;
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
