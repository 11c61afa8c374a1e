"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // Okabe and Ito's colours, which people with any colour vision can tell apart; grey for the rest.
  const colours = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#7a8490", "#8c6bb1"];
  const charts = {};
  let theme = dark.matches ? "dark" : "light";

  const number = (value, digits = 0) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const percent = (share) => number(100 * share, 2) + "%";
  const short = (value) => {
    const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const unit = units.find(([size]) => value >= size);
    return unit ? +(value / unit[0]).toPrecision(3) + unit[1] : String(+value.toPrecision(3));
  };
  const duration = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"]];
    const unit = units.find(([size]) => seconds >= size);
    return unit ? +(seconds / unit[0]).toPrecision(3) + " " + unit[1] : seconds + " s";
  };

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  // Tooltips are HTML: names come from the data and are made harmless.
  const safe = (text) => element("i", text).innerHTML;

  const show = (id, present) => {
    byId(id).hidden = !present;
    return present;
  };

  const facts = (id, rows) => {
    for (const [name, ...values] of rows) {
      const group = document.createElement("div");
      group.append(element("dt", name), ...values.map((value) => element("dd", value)));
      byId(id).append(group);
    }
  };

  const table = (id, head, rows) => {
    const line = (kind, cells) => {
      const row = document.createElement("tr");
      row.append(...cells.map((cell) => element(kind, cell)));
      return row;
    };
    byId(id).append(line("th", head), ...rows.map((row) => line("td", row)));
  };

  const draw = (id, options) => {
    charts[id]?.dispose();
    charts[id] = echarts.init(byId(id), theme === "dark" ? "dark" : null, { renderer: "svg" });
    charts[id].setOption({
      backgroundColor: "transparent",
      color: colours,
      animation: false,
      grid: { left: 16, right: 32, top: 48, bottom: 16, containLabel: true },
      ...options,
    });
  };

  const units = [{ name: "blocks", factor: 1 }, { name: "million tokens", factor: data.block_tokens / 1e6 }];
  if (data.block_bytes > 0) {
    units.push({ name: "GB", factor: data.block_bytes / 1e9 });
  }

  const drawCurve = () => {
    const unit = units[byId("unit").value];
    const at = (points) => points.map(([capacity, rate]) => [capacity * unit.factor, 100 * rate]);
    const line = (curve, more) => ({
      type: "line", name: curve.name, showSymbol: false, lineStyle: { width: 2 }, data: at(curve.points), ...more,
    });
    const [knee, kneeRate] = data.knee;
    const marks = {
      markLine: {
        symbol: "none", silent: true, lineStyle: { type: "dashed" },
        label: { formatter: "ideal " + percent(data.ideal), position: "insideStartTop" },
        data: [{ yAxis: 100 * data.ideal }],
      },
      markPoint: knee > 0 ? {
        symbol: "circle", symbolSize: 10,
        label: { formatter: "knee", position: "right", offset: [2, 14] },
        data: [{ name: "knee", coord: [knee * unit.factor, 100 * kneeRate] }],
      } : undefined,
    };
    const series = data.curves.map((curve, i) => line(curve, i === 0 ? marks : {}));
    for (const policy of data.policies ?? []) {
      series.push(line(policy, { showSymbol: true, symbolSize: 7, lineStyle: { width: 1, type: "dotted" } }));
    }
    draw("curve", {
      legend: { type: "scroll", top: 0 },
      tooltip: {
        trigger: "axis", confine: true,
        formatter: (rows) => number(rows[0].value[0], unit.factor === 1 ? 0 : 2) + " " + unit.name + "<br>" +
          rows.map((row) => row.marker + safe(row.seriesName) + " <b>" + number(row.value[1], 2) + "%</b>").join("<br>"),
      },
      grid: { left: 16, right: 40, top: 48, bottom: 64, containLabel: true },
      dataZoom: [{ type: "inside" }, { type: "slider", bottom: 8, height: 18, showDetail: false }],
      xAxis: {
        type: "log", name: "capacity, " + unit.name, nameLocation: "middle", nameGap: 28,
        min: "dataMin", max: "dataMax", axisLabel: { formatter: short, hideOverlap: true, showMaxLabel: false },
      },
      yAxis: { type: "value", name: "hit rate, % of input tokens", nameTextStyle: { align: "left" }, min: 0 },
      series,
    });
  };

  const drawTiers = () => draw("tiers", {
    legend: { top: 0 },
    tooltip: {
      trigger: "item", confine: true,
      formatter: (row) => row.marker + safe(row.seriesName) + " <b>" + number(row.value, 2) + "%</b>",
    },
    xAxis: { type: "value", name: "% of input tokens", nameLocation: "middle", nameGap: 28, min: 0, max: 100 },
    yAxis: { type: "category", data: [""], axisTick: { show: false } },
    grid: { left: 16, right: 32, top: 40, bottom: 28, containLabel: true },
    series: data.tiers.map((tier) => ({
      type: "bar", stack: "all", name: tier.tier, data: [100 * tier.token_share], barWidth: 36,
      ...(tier.tier === "computed" ? { itemStyle: { color: "#7a8490" } } : {}),
    })),
  });

  const bars = (id, categories, xName, yName, series, format) => draw(id, {
    legend: { top: 0 },
    tooltip: {
      trigger: "axis", axisPointer: { type: "shadow" }, confine: true,
      formatter: (rows) => safe(rows[0].name) + "<br>" +
        rows.map((row) => row.marker + safe(row.seriesName) + " <b>" + format(row.value) + "</b>").join("<br>"),
    },
    grid: { left: 16, right: 32, top: 64, bottom: 28, containLabel: true },
    xAxis: { type: "category", data: categories, name: xName, nameLocation: "middle", nameGap: 28 },
    yAxis: { type: "value", name: yName, nameTextStyle: { align: "left" }, axisLabel: { formatter: short } },
    series: series.map(([name, values]) => ({ type: "bar", name, data: values })),
  });

  const drawTtft = () => bars(
    "ttft", ["mean", "p50", "p90", "p99"], "", "seconds (simulated)",
    [["without cache", data.ttft.without], ["with these tiers", data.ttft.with]],
    (value) => number(value, 3) + " s");

  const drawGaps = () => {
    // Sessions, blocks and requests are counted, so each is shown as a share of its own kind.
    const bins = data.time_bins;
    const share = (kind) => {
      const all = bins.reduce((sum, bin) => sum + bin[kind], 0);
      return bins.map((bin) => all === 0 ? 0 : 100 * bin[kind] / all);
    };
    bars(
      "gaps", bins.map((bin) => "≤ " + duration(bin.upToSeconds)), "time since", "%",
      [["between turns of a session", share("sessionGaps")], ["between uses of a block", share("blockGaps")],
        ["from request to its last reuse", share("lifetimes")]],
      (value) => number(value, 1) + "%");
  };

  const saved = (prefix) => prefix.tokens * (prefix.requests - 1);
  const drawHot = () => {
    const shown = [...data.hot_prefixes].reverse();
    draw("hot", {
      tooltip: {
        trigger: "axis", axisPointer: { type: "shadow" }, confine: true,
        formatter: ([{ dataIndex }]) => {
          const prefix = shown[dataIndex];
          return safe(prefix.id) + "<br>" + number(prefix.tokens) + " tokens in " + number(prefix.blocks) +
            " blocks, " + number(prefix.requests) + " requests<br><b>" + number(saved(prefix)) + "</b> tokens saved";
        },
      },
      grid: { left: 16, right: 32, top: 8, bottom: 28, containLabel: true },
      xAxis: {
        type: "value", name: "tokens saved", nameLocation: "middle", nameGap: 28, axisLabel: { formatter: short },
      },
      yAxis: { type: "category", data: shown.map((prefix) => "…" + prefix.id.slice(-6)) },
      series: [{ type: "bar", name: "tokens saved", data: shown.map(saved) }],
    });
  };

  document.title = data.title;
  byId("title").textContent = data.title;
  byId("made").textContent = data.made;
  facts("facts", data.facts);
  byId("curve-note").textContent =
    (data.sampled ? "Estimated from " + percent(data.sampled) + " of the blocks. " : "Exact, for every capacity. ") +
    "Leaf last touches a prompt's blocks first to last, root last the other way, so that leaves are evicted first." +
    (data.block_bytes > 0 ? " Bytes are those of " + data.model + "." : "");
  byId("unit").append(...units.map((unit, i) => Object.assign(element("option", unit.name), { value: i })));
  byId("unit").value = units.length - 1 === 2 ? 2 : 0;

  const drawings = [drawCurve];
  if (show("tiers-section", data.tiers !== undefined)) {
    byId("cluster").textContent = data.cluster;
    const gigabytes = (bytes) => number(bytes / 1e9, 1);
    table(
      "tiers-table", ["Tier", "Capacity, GB", "Blocks", "Tokens", "Of input", "GB loaded", "GB written"],
      data.tiers.map((tier) => [
        tier.tier, gigabytes(tier.capacity_bytes), number(tier.blocks), number(tier.tokens), percent(tier.token_share),
        gigabytes(tier.loaded_bytes), gigabytes(tier.written_bytes),
      ]));
    facts("tier-facts", data.tier_facts);
    drawings.push(drawTiers);
  }
  if (show("ttft-section", data.ttft !== undefined)) {
    drawings.push(drawTtft);
  }
  if (show("gaps-section", data.time_bins?.length > 0)) {
    drawings.push(drawGaps);
  }
  if (show("hot-section", data.hot_prefixes?.length > 0)) {
    table(
      "hot-table", ["Id of its last block", "Blocks", "Tokens", "Requests"],
      data.hot_prefixes.map((prefix) => [
        prefix.id, number(prefix.blocks), number(prefix.tokens), number(prefix.requests),
      ]));
    drawings.push(drawHot);
  }
  byId("advice").append(...data.advice.map((sentence) => element("li", sentence)));
  byId("yaml").textContent = data.yaml ?? "";
  show("yaml", data.yaml !== undefined);

  const redraw = () => {
    document.documentElement.dataset.theme = theme;
    drawings.forEach((drawing) => drawing());
  };
  byId("unit").addEventListener("change", drawCurve);
  byId("theme").addEventListener("click", () => {
    theme = theme === "dark" ? "light" : "dark";
    redraw();
  });
  dark.addEventListener("change", () => {
    theme = dark.matches ? "dark" : "light";
    redraw();
  });
  window.addEventListener("resize", () => Object.values(charts).forEach((chart) => chart.resize()));
  redraw();
  window.ucmCharts = charts;
})();
