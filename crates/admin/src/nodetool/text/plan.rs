//! `nodetool plan`: Cassandra has no such verb.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::columns::Columns;
use super::number::file_size;
use crate::model::{
    FailingUnit, FailureChance, FailureOdds, FailureRow, MovePlan, PlannedOwnership, PlannedRate,
    PlannedStream,
};

/// The text of a plan of a change.
pub(super) fn print(plan: &MovePlan) -> String {
    let mut text = format!("Plan: {}\nNothing has been changed.\n", plan.title);
    if !plan.refusals.is_empty() {
        text.push_str("\nIt would be refused now:\n");
        plan.refusals.iter().for_each(|why| _ = writeln!(text, "  {why}"));
    }
    tokens(&mut text, plan);
    for of in shown(&plan.ownership, |of| of.system) {
        ownership(&mut text, of);
    }
    streams(&mut text, plan);
    for of in shown(&plan.failures, |of| of.system) {
        odds(&mut text, of);
    }
    notes(&mut text, &plan.notes);
    text
}

/// The text of `plan failures`.
pub(super) fn failures(of: &crate::model::FailurePlan) -> String {
    let mut text = String::new();
    for of in shown(&of.failures, |of| of.system) {
        odds(&mut text, of);
    }
    notes(&mut text, &of.notes);
    text.trim_start_matches('\n').to_owned()
}

/// Those of users, if there are any.
fn shown<T>(all: &[T], is_system: impl Fn(&T) -> bool) -> impl Iterator<Item = &T> {
    let any = all.iter().any(|of| !is_system(of));
    all.iter().filter(move |of| !any || !is_system(of))
}

fn notes(text: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        text.push_str("\nNotes:\n");
        notes.iter().for_each(|note| _ = writeln!(text, "  {note}"));
    }
}

/// A table without blanks at the ends of lines.
fn table(text: &mut String, columns: &Columns) {
    for line in columns.text(&columns.widths(), "  ").lines() {
        let _ = writeln!(text, "  {}", line.trim_end());
    }
}

fn tokens(text: &mut String, plan: &MovePlan) {
    if plan.tokens.is_empty() {
        return;
    }
    text.push_str("\nTokens\n");
    let mut columns = Columns::default();
    columns.row(["Node", "Datacenter", "Rack", "Tokens"]);
    for of in &plan.tokens {
        let drawn = if of.drawn { " (drawn)" } else { "" };
        let tokens = format!("{}{drawn}", of.tokens.join(", "));
        columns.row([&of.node, &of.data_center, &of.rack, &tokens]);
    }
    table(text, &columns);
}

fn ownership(text: &mut String, of: &PlannedOwnership) {
    let _ = writeln!(text, "\nOwnership of {}", of.keyspaces.join(", "));
    let mut columns = Columns::default();
    columns.row(["Node", "Datacenter", "Rack", "Now", "After"]);
    for node in &of.nodes {
        let share = |share: Option<f64>| {
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
        };
        let (before, after) = (share(node.before_share), share(node.after_share));
        columns.row([&node.node, &node.data_center, &node.rack, &before, &after]);
    }
    table(text, &columns);
}

fn streams(text: &mut String, plan: &MovePlan) {
    text.push_str("\nStreams\n");
    let mut pairs: BTreeMap<(u64, &str, &str), (usize, u64)> = BTreeMap::new();
    for PlannedStream { step, from, to, ranges, bytes, .. } in &plan.streams {
        let sum = pairs.entry((*step, from, to)).or_default();
        sum.0 += ranges.len();
        sum.1 += bytes;
    }
    if pairs.is_empty() {
        text.push_str("  Nothing moves.\n");
        return;
    }
    let mut columns = Columns::default();
    columns.row(["From", "To", "Ranges", "Bytes"]);
    for ((_, from, to), (ranges, bytes)) in &pairs {
        columns.row([*from, *to, &ranges.to_string(), &file_size(*bytes)]);
    }
    table(text, &columns);
    let rate = |rate: u64| format!("{}/s", file_size(rate));
    let time = match (plan.seconds, plan.rate) {
        (Some(seconds), PlannedRate::MeasuredBytesPerSecond(of)) => {
            format!("{} at {} a node, as measured", duration(seconds), rate(of))
        }
        (Some(seconds), PlannedRate::LimitBytesPerSecond(of)) => {
            format!("{} at {} a node, the limit", duration(seconds), rate(of))
        }
        _ => "for an unknown time".to_owned(),
    };
    let _ = writeln!(text, "  In all about {}, {time}", file_size(plan.bytes));
}

fn duration(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        0 | 1 => "about a second".to_owned(),
        seconds @ 2..120 => format!("about {seconds} s"),
        seconds @ 120..7200 => format!("about {} min", seconds.div_ceil(60)),
        seconds => format!("about {} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn odds(text: &mut String, of: &FailureOdds) {
    let _ = writeln!(text, "\nChance that some range of {} lacks", of.keyspaces.join(", "));
    let mut columns = Columns::default();
    columns.extend(["what", "when these fail"].into_iter().chain(of.rings.iter().map(|r| &**r)));
    for FailureRow { unit, failed, missing, chances } in &of.rows {
        let unit = match (unit, failed) {
            (FailingUnit::Nodes, 1) => "node",
            (FailingUnit::Nodes, _) => "nodes",
            (FailingUnit::Racks, 1) => "rack",
            (FailingUnit::Racks, _) => "racks",
        };
        let failed = format!("{failed} {unit}");
        let chances: Vec<String> = chances.iter().map(|of| chance(*of)).collect();
        let cells = [missing.as_str(), failed.as_str()].into_iter();
        columns.extend(cells.chain(chances.iter().map(|of| &**of)));
    }
    table(text, &columns);
}

fn chance(of: Option<FailureChance>) -> String {
    let Some(FailureChance { share, exact }) = of else { return "-".to_owned() };
    let about = if exact { "" } else { "~" };
    match share {
        0.0 => format!("{about}0%"),
        1.0 => format!("{about}100%"),
        share if share < 0.0005 => format!("{about}{:.4}%", share * 100.0),
        share => format!("{about}{:.1}%", (share * 100.0).min(99.9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_say_how_sure_they_are() {
        let exact = |share| chance(Some(FailureChance { share, exact: true }));
        assert_eq!(
            [0.0, 1.0, 0.123, 0.00001, 0.9999].map(exact),
            ["0%", "100%", "12.3%", "0.0010%", "99.9%"]
        );
        assert_eq!(chance(Some(FailureChance { share: 0.5, exact: false })), "~50.0%");
        assert_eq!(chance(None), "-");
    }

    #[test]
    fn durations_are_for_people() {
        assert_eq!(
            [0.0, 61.2, 600.0, 7260.0].map(duration),
            ["about a second", "about 62 s", "about 10 min", "about 2 h 1 min"]
        );
    }
}
