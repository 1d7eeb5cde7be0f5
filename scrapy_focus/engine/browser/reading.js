// Functions for a page that is read: whether it changes, its links and buttons, and clicks on these.
() => {
  const MOST_LINKS = 20000, MOST_GONE = 20000, MOST_BUTTONS = 200, MOST_LOOKED_AT = 3000, DEEPEST = 64,
    MOST_ELEMENTS = 100000, MOST_ROOTS = 500;
  const BUTTONS = "button, summary, input[type=button], [role=button], [onclick], a:not([href]), a[href^='#'], " +
    "a[href^='javascript:' i]";
  const start = location.href;
  const links = new Map();  // URL -> {path, text, index}, path: names of elements from the body down to the link
  const buttons = new Map();  // number -> element
  const numbers = new WeakMap();
  const opened = [];
  let changed = performance.now();

  const observer = new MutationObserver((records) => {
    const counts = (record) => record.type === "attributes" ||
      [...record.addedNodes, ...record.removedNodes].some((node) => node.nodeType === Node.ELEMENT_NODE);
    if (!records.some(counts)) return;  // a clock, or a counter
    changed = performance.now();
  });
  observer.observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ["href", "src"]});

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const frame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 2000); });
  const painted = async () => {  // scripts learn what scrolls into view in a frame, and run after it
    await frame();
    await frame();
    await wait(0);
  };
  const label = (element) => (element.innerText || element.value || element.getAttribute("aria-label") ||
    element.title || "").trim().slice(0, 200);
  const shown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility === "visible";

  function address(link) {
    const at = String(link.href).split("#")[0];
    return /^https?:/.test(at) && at !== location.href.split("#")[0] ? at : null;
  }

  function pathOf(element, top = document.body) {
    const path = [];
    const above = (at) => at.parentElement ?? at.getRootNode().host;  // content of a component belongs to its element
    for (let at = element; at && at !== top && path.length < DEEPEST; at = above(at)) path.push(at);
    return path.reverse().map((at) => [at.localName, at.getAttribute("class") || "", at.id || ""]);
  }

  // The document, and the open shadow trees in it.
  function trees() {
    const found = [document];
    let n = 0;
    for (const tree of found) {
      for (const element of tree.querySelectorAll("*")) {
        if (n++ > MOST_ELEMENTS || found.length > MOST_ROOTS) return found;
        if (element.shadowRoot) found.push(element.shadowRoot);
      }
    }
    return found;
  }

  // The new links of the document, which are remembered.
  function collect() {
    let fresh = 0;
    for (const link of trees().flatMap((tree) => [...tree.links ?? tree.querySelectorAll("a[href], area[href]")])) {
      if (links.size >= MOST_LINKS) break;
      const at = address(link);
      if (at === null || links.has(at)) continue;
      links.set(at, {path: pathOf(link), text: link.textContent.trim().slice(0, 200)});
      fresh += 1;
    }
    return fresh;
  }

  function usable(element) {
    return !element.disabled && element.getAttribute("aria-disabled") !== "true" && !element.form &&
      !element.closest("form, [contenteditable]") && !element.hasAttribute("download") && shown(element);
  }

  // Buttons as [number, label, all their text and attributes].
  function offers() {
    const found = [];
    for (const element of trees().flatMap((tree) => [...tree.querySelectorAll(BUTTONS)])) {
      if (found.length >= MOST_BUTTONS) break;
      if (!usable(element)) continue;
      if (!numbers.has(element)) {
        numbers.set(element, buttons.size);
        buttons.set(buttons.size, element);
      }
      const besides = ["aria-label", "title", "value", "name", "id"].map((name) => element.getAttribute(name) || "");
      found.push([numbers.get(element), label(element), besides.join(" ").slice(0, 400)]);
    }
    return found;
  }

  return {
    // Wait until nothing has changed for so many milliseconds, or until the limit has passed.
    async still(ms, most) {
      const end = performance.now() + most;
      changed = performance.now();  // new content is not shown yet
      for (;;) {
        const now = performance.now(), rest = Math.min(changed + ms, end) - now;
        if (now >= end) return false;
        if (rest <= 0) return true;
        await wait(Math.max(rest, 1));
      }
    },

    // From now on no window is opened, and no file requested.
    begin() {
      window.open = (url) => {
        try {
          if (url) opened.push(new URL(url, document.baseURI).href);
        } catch {}
        return null;
      };
      // Of several simultaneous downloads, the developer tools see only the first.
      const click = HTMLElement.prototype.click;
      HTMLAnchorElement.prototype.click = function () {
        if (this.hasAttribute("download") && address(this)) opened.push(this.href);
        else click.call(this);
      };
      addEventListener("click", (event) => {
        const link = event.target instanceof Element && event.target.closest("a[download]");
        if (!link || !address(link)) return;
        opened.push(link.href);
        event.preventDefault();
      }, true);
      collect();
      return links.size;
    },

    // Scroll to the end of the page, and of scrollable elements in it.
    async scroll() {
      let n = 0;
      for (const element of [document.scrollingElement, ...document.body?.getElementsByTagName("*") ?? []]) {
        if (!element || n++ > MOST_LOOKED_AT) break;
        const rest = element.scrollHeight - element.clientHeight;
        if (rest > 50 && element.clientHeight > 100 && (element === document.scrollingElement ||
          /auto|scroll/.test(getComputedStyle(element).overflowY))) element.scrollTop = element.scrollHeight;
      }
      await painted();
    },

    look() {
      return {fresh: collect(), offers: offers(), opened: opened.splice(0, 20)};
    },

    // Remember the links that the page had before its scripts ran, except placeholders.
    recall(source) {
      const plain = new DOMParser().parseFromString(source, "text/html");
      const base = plain.querySelector("base[href]")?.getAttribute("href") ?? "";
      for (const link of plain.links) {
        const href = link.getAttribute("href");
        if (links.size >= MOST_LINKS || /\{\{|\$\{|<%|\[\[/.test(href)) continue;
        const here = document.createElement("a");
        try {
          here.href = new URL(href, new URL(base, start)).href;
        } catch {
          continue;
        }
        const at = address(here);
        if (at === null || links.has(at)) continue;
        links.set(at, {path: pathOf(link, plain.body), text: link.textContent.trim().slice(0, 200)});
      }
    },

    // Whether a click tried to open something.
    led() {
      return opened.length > 0;
    },

    async click(number) {
      const element = buttons.get(number);
      if (element && element.isConnected && usable(element)) element.click();
      await painted();
    },

    // Put a link in place of a button, or at the end of the page, unless there is one to the same URL.
    place(number, url) {
      const button = buttons.get(number), body = document.body ?? document.documentElement;
      const at = url.split("#")[0];
      if (links.has(at)) return false;
      links.set(at, {path: button ? pathOf(button) : [["a", "", ""]], text: button ? label(button) : ""});
      if (button?.localName === "a") {
        button.setAttribute("href", url);
        return true;
      }
      const link = document.createElement("a");
      link.setAttribute("href", url);
      link.dataset.focus = button ? "button" : "left";
      link.textContent = button ? label(button) : "";
      if (!button || !button.isConnected) body.append(link);
      else if (button.localName === "input") button.after(link);
      else button.append(link);
      return true;
    },

    // Restore the URL, and put links that disappeared at the end of the page, with their former places.
    end() {
      collect();
      observer.disconnect();
      const kept = new Map();
      if (location.href !== start) {
        for (const link of document.links) kept.set(link, link.href);
        try {
          history.replaceState(history.state, "", start);
        } catch {}
        for (const [link, href] of kept) if (link.href !== href) link.setAttribute("href", href);
      }
      const there = new Set([...document.links].map((link) => String(link.href).split("#")[0]));
      const parents = new Map();
      let gone = 0;
      for (const [at, {path, text}] of links) {
        if (there.has(at) || at === start.split("#")[0]) continue;
        if (gone++ >= MOST_GONE) break;
        let parent = document.body ?? document.documentElement, key = "";
        path.forEach(([tag, classes, id], i) => {
          key += `/${tag}.${classes}#${id}`;
          const known = i < path.length - 2 ? parents.get(key) : undefined;
          const element = known ?? document.createElement(tag);
          if (known === undefined) {
            if (classes) element.setAttribute("class", classes);
            if (id) element.id = id;
            if (i === 0) element.dataset.focus = "gone";
            parent.append(element);
            parents.set(key, element);
          }
          parent = element;
        });
        parent.setAttribute("href", at);
        parent.textContent = text;
      }
      return {links: links.size, gone};
    },
  };
}
