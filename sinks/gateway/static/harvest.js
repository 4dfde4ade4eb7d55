"use strict";
// Hits as one types, completion of words, keys. Every page works without it; it asks only for parts of the same pages.
{
  const TYPED_MS = 120; // pause in typing after which hits are asked for
  const SETTLED_MS = 1500; // pause after which the next change is a new entry of the history
  const LAST_WORD = /[^\s()":]+$/;
  const KEYS_OFF = "harvest-keys-off";
  const BUSY = "No answer yet: the server is busy. Type on to try again.";
  const AWAY = "No answer: the server cannot be reached. Type on to try again.";

  const at = (id) => document.getElementById(id);
  const form = at("search") ?? document.createElement("form"), input = at("q") ?? document.createElement("input"), results = at("results"), facets = at("facets");
  const notice = document.createElement("p"), words = document.createElement("ul");
  const address = (path, asked) => Object.assign(new URL(path, form.action), { search: asked });

  async function ask(path, asked, signal) {
    const answer = await fetch(address(path, asked), { signal });
    if (!answer.ok || answer.redirected) throw new Error(answer.status === 401 ? "Load the page again to log in." : BUSY);
    return answer;
  }

  // Hits as one types, in the state that the hidden fields of the form keep
  let running = new AbortController(), typing = 0, settling = 0, settled = true, isHeld = false, shown = location.search;

  async function show(asked, proposed) {
    running.abort();
    const { signal } = (running = new AbortController());
    shown = location.search;
    results.setAttribute("aria-busy", "true");
    try {
      const hits = await (await ask("results", asked, signal)).text();
      // While a word is incomplete, the hits before are better than none.
      isHeld = hits.includes("data-none") && (await proposed);
      signal.throwIfAborted();
      if (isHeld) return true;
      results.classList.remove("old");
      facets.classList.remove("old");
      showHits(hits);
      showFacets(await (await ask("facets", asked, signal)).text());
      notice.textContent = "";
    } catch (error) {
      if (signal.aborted) return true;
      notice.textContent = error.name === "Error" ? error.message : AWAY;
      results.classList.add("old"); // these are the hits of an earlier query
      facets.classList.add("old");
      return false;
    } finally {
      if (!signal.aborted) results.removeAttribute("aria-busy");
    }
    return true;
  }

  function showHits(html) {
    results.innerHTML = html; // all text of summaries is escaped in it
    const { count, start } = results.querySelector("[data-count]").dataset;
    document.body.className = start === undefined ? "found" : "start";
    document.title = `${input.value.trim() || (start === undefined ? "Results" : "Search")} – Harvest`;
    at("live").textContent = count;
  }

  function showFacets(html) {
    const open = [...facets.querySelectorAll("details[open]")].map((each) => each.dataset.fold);
    facets.innerHTML = html;
    for (const each of facets.querySelectorAll("details")) each.open ||= open.includes(each.dataset.fold);
  }

  function typed(proposed) {
    const fields = new URLSearchParams(new FormData(form));
    if (!input.value.trim()) fields.delete("q");
    const asked = fields.toString(), url = address("", asked);
    // One entry of the history for each query that one stops at.
    if (url.href !== location.href) history[settled ? "pushState" : "replaceState"](null, "", url);
    settled = false;
    clearTimeout(settling);
    settling = setTimeout(() => { settled = true; if (isHeld) show(asked); }, SETTLED_MS);
    return show(asked, proposed);
  }

  async function submitted(event) {
    clearTimeout(typing);
    close();
    if (!results) return;
    event.preventDefault();
    if (matchMedia("(pointer: coarse)").matches) input.blur();
    const answered = typed();
    settled = true;
    if (!(await answered)) location.reload(); // the page says better than a notice what is wrong
  }

  function restored() {
    if (!results || location.search === shown) return; // a link within the page
    clearTimeout(typing);
    close();
    settled = true;
    input.value = new URLSearchParams(location.search).get("q") ?? "";
    show(location.search);
  }

  // Completion of the last word: a combobox with a list (ARIA Authoring Practices)
  let completing = new AbortController(), chosen = -1;

  function close() {
    completing.abort();
    words.hidden = true;
    chosen = -1;
    input.ariaExpanded = "false";
    input.removeAttribute("aria-activedescendant");
  }

  async function complete() {
    close();
    const { signal } = (completing = new AbortController()), last = LAST_WORD.exec(input.value)?.[0] ?? "";
    if (last.length < 2 || input.value.length > 400 || input.selectionEnd < input.value.length) return false;
    try {
      const asked = new URLSearchParams({ q: input.value, limit: "6" }).toString();
      const found = (await (await ask("api/complete", asked, signal)).json()).words;
      if (!signal.aborted && document.activeElement === input) propose(found.filter(({ word }) => word !== last.toLowerCase()));
    } catch {
      // No words then: what is wrong is said of the hits.
    }
    return !signal.aborted && !words.hidden;
  }

  function propose(found) {
    words.replaceChildren(...found.map(({ word }, number) => {
      const option = document.createElement("li");
      Object.assign(option, { id: `word-${number}`, role: "option", ariaSelected: "false", textContent: word }).dataset.word = word;
      return option;
    }));
    words.hidden = !found.length;
    input.ariaExpanded = String(!words.hidden);
  }

  function choose(number) {
    const options = [...words.children];
    chosen = number < options.length ? number : -1; // after the last one comes the field itself
    options.forEach((each, place) => { each.ariaSelected = String(place === chosen); });
    input.setAttribute("aria-activedescendant", options[chosen]?.id ?? "");
  }

  function accept(option) {
    input.value = `${input.value.replace(LAST_WORD, "")}${option.dataset.word} `;
    close();
    if (results) typed();
  }

  // Keys
  const titles = () => [...document.querySelectorAll(".hit h2 a")];
  const closeMenus = (but) => document.querySelectorAll(".menu[open]").forEach((menu) => { menu.open = menu.contains(but); });
  const isPlain = (event) => !(event.isComposing || event.ctrlKey || event.altKey || event.metaKey);

  function keyInField(event) {
    if (!isPlain(event)) return;
    const isOpen = !words.hidden;
    if (event.key === "ArrowDown" && isOpen) choose(chosen + 1);
    else if (event.key === "ArrowUp" && isOpen) choose(chosen < 0 ? words.children.length - 1 : chosen ? chosen - 1 : Infinity);
    else if (event.key === "ArrowDown" && titles().length) titles()[0].focus();
    else if (event.key === "Escape" && isOpen) close();
    else if (event.key === "Enter" && isOpen && words.children[chosen]) accept(words.children[chosen]);
    else return;
    event.preventDefault();
  }

  function keyOnPage(event) {
    if (event.key === "Escape") closeMenus(null);
    if (!isPlain(event) || event.target.closest?.("input")) return;
    const links = titles(), place = links.indexOf(document.activeElement), isLetter = event.key.length === 1;
    if (isLetter && localStorage.getItem(KEYS_OFF)) return;
    if (event.key === "/") input.select();
    else if (event.key === "j" || (event.key === "ArrowDown" && place >= 0)) links[Math.min(place + 1, links.length - 1)]?.focus();
    else if (place >= 0 && (event.key === "k" || event.key === "ArrowUp")) (links[place - 1] ?? input).focus();
    else return;
    event.preventDefault();
  }

  Object.assign(notice, { id: "notice", role: "status" });
  document.body.append(notice);
  Object.assign(words, { id: "words", className: "words", hidden: true, role: "listbox", ariaLabel: "Words" });
  form.append(words);
  Object.assign(input, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false", autocomplete: "off" });
  input.setAttribute("aria-controls", "words");
  words.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the field keeps the focus
    if (event.target.closest("li")) accept(event.target.closest("li"));
  });
  document.addEventListener("pointermove", ({ target }) => {
    if (!words.hidden && !form.contains(target)) close(); // who points at a hit is done with words
  });
  form.addEventListener("submit", submitted);
  input.addEventListener("keydown", keyInField);
  input.addEventListener("blur", close);
  for (const kind of ["input", "compositionend"]) input.addEventListener(kind, (event) => {
    clearTimeout(typing);
    if (!event.isComposing) typing = setTimeout(results ? () => typed(complete()) : complete, TYPED_MS);
  });
  document.addEventListener("keydown", keyOnPage);
  document.addEventListener("click", (event) => closeMenus(event.target));
  addEventListener("popstate", restored);
  if (at("keys")) {
    at("keys").closest("label").hidden = false;
    at("keys").checked = !localStorage.getItem(KEYS_OFF);
    at("keys").addEventListener("change", ({ target }) => localStorage.setItem(KEYS_OFF, target.checked ? "" : "1"));
  }
}
