// @ts-check
// Every page works without this script. It opens what a link or a search hit leads into, lets the keyboard reach
// what scrolls sideways, hides tooltips on Escape, and copies formulas as TeX. A classic script, so that it also runs in pages opened from disk.
(() => {
  "use strict";

  /**
   * Opens the closed <details> around an element, itself included.
   * @param {Element | null} element
   */
  function reveal(element) {
    for (let at = element?.closest("details"); at; at = at.parentElement?.closest("details")) at.open = true;
  }

  /** What the address names after its #; nothing if that is no proper name. */
  function named() {
    try {
      return document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null;
    }
  }

  /** Opens and shows what the address names. */
  function followHash() {
    const target = named();
    if (!target?.closest("details")) return;
    reveal(target);
    target.scrollIntoView();
  }

  /**
   * Looks at what Material's script has added to the page.
   * @param {MutationRecord[]} records
   */
  function watch(records) {
    for (const node of records.flatMap((record) => [...record.addedNodes])) {
      if (!(node instanceof Element)) continue;
      // A search hit: open what hides it; but never an answer, which a word of the question would give away.
      if (node.matches(".md-content mark") && !node.closest("[data-search-exclude]")) reveal(node);
      // The copy button of a code block stands in a <nav> without a name: many landmarks that lead nowhere.
      if (node.matches("nav.md-code__nav")) node.setAttribute("role", "none");
    }
  }

  /** Makes exactly those wide formulas and tables a stop of the Tab key that have something to scroll. */
  function markScrollers() {
    /** @type {NodeListOf<HTMLElement>} */
    const wide = document.querySelectorAll(".md-content :is(x-math, .md-typeset__scrollwrap)");
    for (const element of wide) {
      if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
      else element.removeAttribute("tabindex");
    }
  }

  /**
   * Puts TeX, not a heap of letters, on the clipboard when the selection holds formulas.
   * @param {ClipboardEvent} event
   */
  function copyTex(event) {
    const selection = getSelection();
    if (!selection?.rangeCount || !event.clipboardData) return;
    const copy = selection.getRangeAt(0).cloneContents();
    const formulas = copy.querySelectorAll("x-math");
    for (const formula of formulas) {
      const sign = formula.matches(".display") ? "$$" : "$";
      formula.replaceWith(sign + (formula.querySelector("annotation")?.textContent ?? "").trim() + sign);
    }
    if (!formulas.length) return;
    event.clipboardData.setData("text/plain", copy.textContent ?? "");
    event.preventDefault();
  }

  /**
   * Escape takes a tooltip away without moving pointer or focus; Material has no key for that.
   * @param {KeyboardEvent} event
   */
  function hideTooltips(event) {
    if (event.key !== "Escape") return;
    for (const tip of document.querySelectorAll(".md-tooltip2--active")) tip.classList.remove("md-tooltip2--active");
  }

  addEventListener("hashchange", followHash);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    // A second click on the same link changes no hash.
    if (link?.hash && link.href === location.href) followHash();
  });
  new MutationObserver(watch).observe(document.body, { childList: true, subtree: true });

  addEventListener("load", markScrollers);
  addEventListener("resize", markScrollers);
  document.addEventListener("toggle", markScrollers, true);
  document.addEventListener("copy", copyTex);
  document.addEventListener("keydown", hideTooltips);

  followHash();
})();
