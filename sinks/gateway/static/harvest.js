"use strict";
// Hits as one types, completion of words, keys. Every page works without it, and it asks only for parts of the same pages.
{
  const TYPED_MS = 120; // pause in typing after which hits are asked for
  const SETTLED_MS = 1500; // pause after which the next change is a new entry of the history
  const MAX_WORDS = 6;
  const LAST_WORD = /[^\s()":]+$/;
  const KEYS_OFF = "harvest-keys-off";

  const at = (id) => document.getElementById(id);
  const form = at("search"), input = at("q"), results = at("results"), facets = at("facets"), live = at("live");
  const address = (path, query) => { const url = new URL(path, form.action); url.search = query; return url; };

  const notice = document.createElement("p");
  notice.id = "notice";
  notice.setAttribute("role", "status");
  document.body.append(notice);

  async function ask(path, query, signal) {
    const answer = await fetch(address(path, query), { signal, headers: { Accept: "text/html, application/json" } });
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    return answer;
  }

  // Hits as one types

  let running = new AbortController(), typing = 0, settling = 0, settled = true;

  function query() {
    const found = new URLSearchParams(new FormData(form));
    if (!input.value.trim()) found.delete("q");
    return found.toString();
  }

  function replaceFacets(html) {
    const open = [...facets.querySelectorAll("details[open]")].map((each) => each.dataset.fold);
    facets.innerHTML = html;
    for (const each of facets.querySelectorAll("details")) each.open = open.includes(each.dataset.fold);
  }

  async function show(asked) {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    results.setAttribute("aria-busy", "true");
    try {
      // The server escapes all text of summaries in these parts.
      const hits = await (await ask("results", asked, signal)).text();
      signal.throwIfAborted();
      results.innerHTML = hits;
      const count = results.querySelector("[data-count]"), isStart = "start" in count.dataset;
      document.body.className = isStart ? "start" : "found";
      document.title = `${input.value.trim() || (isStart ? "Search" : "Results")} – Harvest`;
      live.textContent = count.dataset.count;
      notice.textContent = "";
      const values = await (await ask("facets", asked, signal)).text();
      signal.throwIfAborted();
      replaceFacets(values);
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      notice.textContent = error.message === "401" ? "Load the page again to log in." : "No answer yet: the server is busy. Type on to try again.";
      return false;
    } finally {
      if (!signal.aborted) results.removeAttribute("aria-busy");
    }
  }

  function remember(asked) {
    const url = address("", asked);
    if (url.href !== location.href) history[settled ? "pushState" : "replaceState"](null, "", url);
    settled = false;
    clearTimeout(settling);
    settling = setTimeout(() => { settled = true; }, SETTLED_MS);
  }

  function typed() {
    const asked = query();
    remember(asked);
    complete();
    return show(asked);
  }

  async function submitted(event) {
    clearTimeout(typing);
    close();
    if (!results) return;
    event.preventDefault();
    const asked = query();
    remember(asked);
    settled = true;
    if (matchMedia("(pointer: coarse)").matches) input.blur();
    // The page says better than a notice what is wrong.
    if (!(await show(asked))) location.reload();
  }

  function restored() {
    clearTimeout(typing);
    close();
    settled = true;
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    show(location.search);
  }

  // Completion of the last word: a combobox with a list (ARIA Authoring Practices)

  const words = document.createElement("ul");
  let completing = new AbortController(), chosen = -1;

  function prepare() {
    words.id = "words";
    words.className = "words";
    words.hidden = true;
    words.setAttribute("role", "listbox");
    words.setAttribute("aria-label", "Words");
    form.append(words);
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "words", autocomplete: "off" };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    words.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = event.target.closest("li");
      if (option) accept(option);
    });
  }

  function close() {
    completing.abort();
    words.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  async function complete() {
    close();
    completing = new AbortController();
    const { signal } = completing, last = LAST_WORD.exec(input.value)?.[0] ?? "";
    if (last.length < 2 || input.value.length > 400 || input.selectionEnd < input.value.length) return;
    try {
      const asked = new URLSearchParams({ q: input.value, limit: String(MAX_WORDS) }).toString();
      const found = (await (await ask("api/complete", asked, signal)).json()).words;
      if (!signal.aborted && document.activeElement === input) propose(found.filter((each) => each.word !== last.toLowerCase()));
    } catch {
      // No proposals then: the hits say what is wrong.
    }
  }

  function propose(found) {
    words.replaceChildren(...found.map(({ word, total }, number) => {
      const option = document.createElement("li"), count = document.createElement("span");
      option.id = `word-${number}`;
      option.dataset.word = word;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      count.textContent = total.toLocaleString("en");
      option.append(word, " ", count);
      return option;
    }));
    words.hidden = !found.length;
    input.setAttribute("aria-expanded", String(!words.hidden));
  }

  function choose(number) {
    const options = [...words.children];
    chosen = (number + options.length + 1) % (options.length + 1); // the last place is the field itself
    options.forEach((each, place) => each.setAttribute("aria-selected", String(place === chosen)));
    if (options[chosen]) input.setAttribute("aria-activedescendant", options[chosen].id);
    else input.removeAttribute("aria-activedescendant");
  }

  function accept(option) {
    input.value = `${input.value.replace(LAST_WORD, "")}${option.dataset.word} `;
    close();
    if (results) typed();
  }

  // Keys

  const titles = () => [...document.querySelectorAll(".hit h2 a")];

  function inField(event) {
    const isOpen = !words.hidden;
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "ArrowDown" && !isOpen && titles().length) titles()[0].focus();
    else if (event.key === "ArrowDown" && isOpen) choose(chosen + 1);
    else if (event.key === "ArrowUp" && isOpen) choose(chosen < 0 ? words.children.length - 1 : chosen - 1);
    else if (event.key === "Escape" && isOpen) close();
    else if (event.key === "Enter" && isOpen && words.children[chosen]) accept(words.children[chosen]);
    else return;
    event.preventDefault();
  }

  function onPage(event) {
    if (event.key === "Escape") closeMenus(null);
    if (event.target.closest?.("input, textarea, select") || event.ctrlKey || event.altKey || event.metaKey) return;
    const links = titles(), place = links.indexOf(document.activeElement);
    const isLetter = event.key.length === 1;
    if (isLetter && localStorage.getItem(KEYS_OFF)) return;
    if (event.key === "/") { input.focus(); input.select(); }
    else if (event.key === "j" || (event.key === "ArrowDown" && place >= 0)) links[Math.min(place + 1, links.length - 1)]?.focus();
    else if (place > 0 && (event.key === "k" || event.key === "ArrowUp")) links[place - 1].focus();
    else if (place === 0 && (event.key === "k" || event.key === "ArrowUp")) input.focus();
    else return;
    event.preventDefault();
  }

  function closeMenus(target) {
    for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.open = false;
  }

  function prepareSwitch(box) {
    box.closest("label").hidden = false;
    box.checked = !localStorage.getItem(KEYS_OFF);
    box.addEventListener("change", () => {
      if (box.checked) localStorage.removeItem(KEYS_OFF);
      else localStorage.setItem(KEYS_OFF, "1");
    });
  }

  prepare();
  form.addEventListener("submit", submitted);
  input.addEventListener("keydown", inField);
  input.addEventListener("blur", close);
  input.addEventListener("input", (event) => {
    clearTimeout(typing);
    if (!event.isComposing) typing = setTimeout(results ? typed : complete, TYPED_MS);
  });
  document.addEventListener("keydown", onPage);
  document.addEventListener("click", (event) => closeMenus(event.target));
  if (results) addEventListener("popstate", restored);
  if (at("keys")) prepareSwitch(at("keys"));
}
