/* Without this script the tables are sorted by name and their heads are plain text. It changes no
   sizes, because a new layout of a table with thousands of rows takes seconds. */
"use strict";
const order = new Intl.Collator("en", { numeric: true }).compare;
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.firstElementChild;
    button.disabled = false;
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const value = row => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows].map(row => [value(row), row]);
      const known = rows.filter(([key]) => key !== "");
      const isNumber = known.every(([key]) => !Number.isNaN(Number(key)));
      known.sort(([a], [b]) => turn * (isNumber ? a - b : order(a, b)));
      const none = rows.filter(([key]) => key === "");
      for (const [, row] of [...known, ...none]) table.tBodies[0].append(row);
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending");
    });
  });
}
