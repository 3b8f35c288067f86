"use strict";
const all = (query, from = document) => [...from.querySelectorAll(query)];
const byId = (id) => document.getElementById(id);
const made = (name, text = "", attributes = {}) => {
  const element = Object.assign(document.createElement(name), attributes);
  element.textContent = text;
  return element;
};

// Light and dark: as the system says, until somebody says otherwise.
const root = document.documentElement, theme = byId("theme");
const shine = (dark) => {
  root.dataset.theme = dark ? "dark" : "light";
  theme.textContent = dark ? "Light" : "Dark";
};
const system = matchMedia("(prefers-color-scheme: dark)");
shine(system.matches);
system.addEventListener("change", () => shine(system.matches));
theme.addEventListener("click", () => shine(root.dataset.theme === "light"));

// Search: cards and contents that lack one of the words, or the method that is shown alone, are hidden.
const search = byId("search"), cards = all("article");
const texts = new Map(cards.map((card) => [card, `${card.dataset.kind} ${card.textContent}`.toLowerCase()]));
const entries = new Map(all("[data-for]").map((entry) => [entry.dataset.for, entry]));
const method = byId("method"), view = byId("view");
const about = (element) => !method.value || (element.dataset.plugins ?? "").split(" ").includes(method.value);
const find = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let number = 0;
  for (const card of cards) {
    const shown = about(card) && words.every((word) => texts.get(card).includes(word));
    card.hidden = entries.get(card.id).hidden = !shown;
    number += shown;
  }
  const all_shown = !words.length && !method.value;
  for (const section of all("section")) section.hidden = !all_shown && !all("article:not([hidden])", section).length;
  byId("number").textContent = all_shown ? "" : `${number} of ${cards.length}`;
  byId("nothing").hidden = all_shown || number > 0;
};
search.addEventListener("input", find);

// One method: what it does, what it cost, its verdicts, and its rows of all tables.
const methods = JSON.parse(byId("methods").textContent);
const part = (table, rows, label) => {
  const box = made("div", "", { className: "scroll", role: "region", tabIndex: 0, ariaLabel: label });
  const copy = table.cloneNode(), body = made("tbody");
  body.append(...rows.map((row) => row.cloneNode(true)));
  copy.append(table.tHead.cloneNode(true), body);
  for (const button of all("button", copy)) button.replaceWith(button.textContent);
  box.append(copy);
  return box;
};
const plain = (cell) => cell.textContent.replace(/[¹²*≈]|\(.*diverged\)/g, "").trim();
const rows = function* (card, names) {
  for (const table of all("table", card)) {
    const own = [...table.tBodies[0].rows].filter((row) => [...row.cells].some((cell) => names.includes(plain(cell))));
    if (own.length) yield part(table, own, table.parentElement.ariaLabel ?? card.id);
  }
};
const look = () => {
  const one = methods[method.value];
  view.replaceChildren();
  view.hidden = !one;
  find();
  if (!one) return;
  view.append(made("h2", one.label), made("p", one.about), made("p", `Source: ${one.sources.join("; ")}`));
  if (one.cost) view.append(made("p", `Computation: ${one.cost}.`));
  const claims = all(".judged li").filter(about), list = made("ul", "", { className: "judged" });
  list.append(...claims.map((claim) => claim.cloneNode(true)));
  if (claims.length) view.append(made("h3", "Claims"), list);
  for (const card of cards.filter((card) => about(card) && card.dataset.kind !== "verdicts")) {
    const own = [...rows(card, one.names[card.id.split("/")[0]] ?? [])], head = made("h3");
    head.append(made("a", card.querySelector("h3").textContent, { href: `#${card.id}` }));
    if (own.length) view.append(head, ...own);
  }
};
method.addEventListener("change", () => {
  look();
  if (method.value) view.scrollIntoView();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    find();
  }
});

// A link leads to its card, whatever was searched.
const reveal = () => {
  const card = byId(decodeURIComponent(location.hash.slice(1)));
  if (card?.closest("[hidden]")) {
    search.value = method.value = "";
    look();
    card.scrollIntoView();
  }
};
addEventListener("hashchange", reveal);

// The matrix: a column's head sorts by it, numbers by their value, what is no number last.
const value = (cell) => {
  const number = cell.textContent.replaceAll("−", "-").match(/^[\s≈]*([-+]?\d*\.?\d+(e[-+]?\d+)?)/i);
  return number ? Number(number[1]) : NaN;
};
const sort = (table, head, place) => {
  const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1, body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [place ? value(row.cells[place]) : NaN, row.cells[place].textContent, row]);
  rows.sort(([a, text], [b, other]) =>
    isNaN(a) && isNaN(b) ? (place ? 0 : way * text.localeCompare(other)) : isNaN(a) ? 1 : isNaN(b) ? -1 : way * (a - b));
  body.append(...rows.map(([, , row]) => row));
  for (const one of all("[aria-sort]", table)) one.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
};
for (const table of all("[data-kind=matrix] table")) {
  [...table.tHead.rows].at(-1).querySelectorAll("th").forEach((head, place) => {
    const button = made("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(table, head, place));
  });
}

// Verdicts: on a telephone each row is a list, whose cells say which column they are of.
for (const table of all("[data-kind=verdicts] table")) {
  const heads = [...table.tHead.rows].at(-1).cells;
  table.classList.add("stacked");
  for (const cell of all("td", table)) cell.dataset.head = heads[cell.cellIndex].textContent;
}

// The contents: closed where there is no room beside, and marked where one reads.
document.querySelector(".tools").hidden = false;
byId("contents").open = !matchMedia("(max-width: 62rem)").matches;
const watch = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) {
    const link = entries.get(target.id).firstElementChild;
    if (isIntersecting) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-20% 0px -70% 0px" });
cards.forEach((card) => watch.observe(card));
