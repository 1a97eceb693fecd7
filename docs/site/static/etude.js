"use strict";
// What the theme's pages lack for readers who use a keyboard or a screen reader.

function headingOf(element) {
  const heading = element.closest("section")?.querySelector("h1, h2, h3, h4, h5");
  return heading ? heading.textContent.replace("¶", "").trim() : "";
}

// What scrolls takes the focus, so that the arrow keys scroll it, and has a name.
function scrolling(element) {
  if (element.scrollWidth <= element.clientWidth || element.hasAttribute("tabindex")) return;
  element.tabIndex = 0;
  element.role = "group";
  element.ariaLabel = `${element.matches("pre") ? "Text" : "Table"}: ${headingOf(element)}`;
}

function scrollingAll() {
  document.querySelectorAll("article pre, .table-wrapper").forEach(scrolling);
}

addEventListener("DOMContentLoaded", () => {
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
  for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.ariaLevel = "2";
  const results = document.getElementById("search-results");
  if (results) results.before(Object.assign(document.createElement("h1"), { textContent: "Search" }));
  scrollingAll();
});
addEventListener("load", scrollingAll);
addEventListener("resize", scrollingAll);
