"""How the page of a report looks: on wide and narrow screens, by day and by night, and on paper."""

STYLE = """
:root { --page: #ffffff; --ink: #1d2430; --soft: #5a6678; --line: #d9dee6; --shade: #f4f6f9;
  --ours: #c2410c; --good: #15803d; --bad: #b91c1c; --tint: #fff4ec }
@media (prefers-color-scheme: dark) { :root { --page: #14181f; --ink: #e4e8ee; --soft: #9aa7b8;
  --line: #2e3643; --shade: #1c222c; --ours: #fb923c; --good: #4ade80; --bad: #f87171;
  --tint: #2b2019 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 1rem }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem }
h3 { font-size: 1.02rem; margin: 1.75rem 0 .5rem }
small { color: var(--soft); font-size: .8rem; line-height: 1.3; display: inline-block }
.note { background: var(--tint); border-left: 4px solid var(--ours); padding: .6rem .9rem;
  margin: 1rem 0 }
.caption, footer { color: var(--soft); font-size: .86rem; margin: .4rem 0 1rem; max-width: 48rem }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .75rem;
  margin: 1rem 0 }
.card { background: var(--shade); border: 1px solid var(--line); border-radius: .5rem;
  padding: .7rem .9rem }
.card strong { font-size: 1.7rem; line-height: 1.2 }
.card.ours { border-color: var(--ours); background: var(--tint) }
.card.ours strong { color: var(--ours) }
.wide { overflow-x: auto; margin: 0 0 .25rem }
figure.wide { margin: 0 0 1.5rem }
figure svg { display: block; min-width: 38rem; max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .28rem .65rem; white-space: nowrap }
thead th { border-bottom: 2px solid var(--line); color: var(--soft); font-weight: 600;
  vertical-align: bottom; white-space: normal; min-width: 4.2rem }
th:first-child { text-align: left; padding-left: .3rem; position: sticky; left: 0;
  background: var(--page); font-weight: 500; min-width: 7rem }
tbody tr + tr > * { border-top: 1px solid var(--line) }
tr.ours > * { background: var(--tint); font-weight: 650 }
details { margin: .5rem 0 }
summary { cursor: pointer; color: var(--soft); font-size: .92rem; padding: .2rem 0 }
summary:hover { color: var(--ink) }
pre { background: var(--shade); padding: .75rem; overflow-x: auto; font-size: .8rem;
  border-radius: .4rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; font-size: .92rem;
  margin: .5rem 0 }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.example { border: 1px solid var(--line); border-left: 5px solid var(--bad); border-radius: .4rem;
  padding: .6rem .9rem; margin: .8rem 0; break-inside: avoid }
.example.found { border-left-color: var(--good) }
.example header { display: flex; flex-wrap: wrap; gap: .2rem .8rem; align-items: baseline;
  margin-bottom: .45rem }
.tag { color: var(--soft); font-size: .85rem }
.verdict { margin-left: auto; font-size: .88rem; font-weight: 600; color: var(--bad) }
.found .verdict { color: var(--good) }
.asked { border-bottom: 1px dashed var(--line); padding-bottom: .5rem; margin-bottom: .6rem }
.hits { display: flex; flex-wrap: wrap; gap: .7rem; align-items: flex-start }
.hits.text { display: grid; gap: .55rem }
.hit { display: flex; flex-direction: column; gap: .15rem }
.hits.text .hit { flex-direction: row-reverse; justify-content: flex-end; gap: .8rem }
.hits.text .hit small { flex: 0 0 6.2rem }
.hit.answer .thumb { outline: 3px solid var(--good); outline-offset: 1px }
.hit.answer small { color: var(--good); font-weight: 600 }
.thumb { display: block; width: 128px; height: auto; border-radius: .25rem;
  background: var(--line) }
.thumb.nothing { height: 96px; font-size: .8rem; color: var(--soft); display: grid;
  place-items: center }
.medium { display: grid; width: 128px }
.wave { width: 128px; height: 40px; fill: var(--ours); background: var(--shade) }
.words { font-size: .9rem; overflow-wrap: anywhere; max-width: 48rem }
.decision { display: flex; flex-wrap: wrap; gap: .4rem .6rem; align-items: center;
  margin: .6rem 0 0; font-size: .9rem }
.odd { position: relative; display: inline-block; min-width: 6.5rem; padding: .1rem .5rem;
  border: 1px solid var(--line); border-radius: .3rem; overflow: hidden }
.odd i { position: absolute; inset: 0 auto 0 0; background: var(--line) }
.odd span { position: relative }
.odd.chosen { border-color: var(--ours); font-weight: 650 }
@media (max-width: 40rem) {
  body { font-size: 15px }
  main { padding: .75rem .8rem 2rem }
  h1 { font-size: 1.35rem }
  dl { grid-template-columns: 1fr; gap: 0 }
  dd { margin-bottom: .5rem }
  .cards { grid-template-columns: 1fr 1fr }
  .thumb, .medium, .wave { width: 92px }
  .verdict { margin-left: 0; width: 100% }
  .hits.text .hit { display: grid; gap: 0 }
  .hits.text .hit small { order: -1 }
}
@media print { .wide { overflow: visible } }
"""
