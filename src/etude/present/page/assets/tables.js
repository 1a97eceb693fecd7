"use strict";
// Tables that sort by their headings and show the rows that hold the words of a filter.

function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [row.cells[column].dataset.key, row]);
  const numeric = keyed.every(([key]) => key === "" || !Number.isNaN(Number(key)));
  const sign = descending ? -1 : 1;
  keyed.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // what is not known stands last, either way
    return sign * (numeric ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true }));
  });
  body.append(...keyed.map(([, row]) => row));
  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (place === column) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}

function filterTable(holder) {
  const words = holder.querySelector(".filter input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...holder.querySelector("tbody").rows];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  const shown = rows.filter((row) => !row.hidden).length;
  holder.querySelector(".count").textContent =
    shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    cell.querySelector("button").addEventListener("click", () => {
      sortTable(table, column, cell.getAttribute("aria-sort") === "ascending");
    });
  });
}
for (const input of document.querySelectorAll(".filter input")) {
  input.addEventListener("input", () => filterTable(input.closest(".table")));
}
