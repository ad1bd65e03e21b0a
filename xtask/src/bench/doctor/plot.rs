//! Bars beside each other as SVG: a panel for each figure, a group for each case, a bar for each
//! system.

use std::fmt::Write as _;

use crate::machine::Outcome;

const WIDTH: f64 = 960.0;
/// Of the bars of a panel, of what stands above them, and of the names of cases below.
const BARS: f64 = 150.0;
const ABOVE: f64 = 50.0;
const BELOW: f64 = 24.0;
/// Where panels begin.
const TOP: f64 = 50.0;
/// Where the greatest value is so many times the least, bars grow by its logarithm.
const LINEAR_MOST: f64 = 50.0;
/// Helenus' colour, and Cassandra's.
const COLOURS: [&str; 2] = ["#0066cc", "#cc3300"];

pub struct Bar<'a> {
    pub case: &'a str,
    pub is_ours: bool,
    pub value: f64,
    pub label: String,
}

/// Panels by their names.
pub fn svg(title: &str, panels: &[(&str, Vec<Bar<'_>>)]) -> Outcome<String> {
    let height = TOP + panels.len() as f64 * (ABOVE + BARS + BELOW);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <text x=\"4\" y=\"18\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    for (n, (name, colour)) in ["Helenus", "Cassandra 5.0.9"].iter().zip(COLOURS).enumerate() {
        let x = 4.0 + n as f64 * 120.0;
        writeln!(text, "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/>")?;
        writeln!(text, "<text x=\"{}\" y=\"38\">{name}</text>", x + 16.0)?;
    }
    for (n, (name, bars)) in panels.iter().enumerate() {
        panel(&mut text, TOP + n as f64 * (ABOVE + BARS + BELOW), name, bars)?;
    }
    text.push_str("</svg>\n");
    Ok(text)
}

fn panel(text: &mut String, top: f64, name: &str, bars: &[Bar<'_>]) -> Outcome {
    let mut cases: Vec<&str> = Vec::new();
    for bar in bars {
        if cases.last() != Some(&bar.case) {
            cases.push(bar.case);
        }
    }
    let (share, is_linear) = scale(bars);
    let how = if is_linear { "" } else { ", logarithmic" };
    writeln!(text, "<text x=\"4\" y=\"{}\">{}{how}</text>", top + 20.0, escaped(name))?;
    let step = WIDTH / cases.len().max(1) as f64;
    let (base, wide) = (top + ABOVE + BARS, step * 0.35);
    for bar in bars {
        let at = cases.iter().position(|case| *case == bar.case).unwrap_or_default() as f64;
        let (offset, colour) = if bar.is_ours { (0.1, COLOURS[0]) } else { (0.5, COLOURS[1]) };
        let (x, high) = ((at + offset) * step, BARS * share(bar.value));
        writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
             fill=\"{colour}\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            base - high,
            x + wide / 2.0,
            base - high - 4.0,
            escaped(&bar.label)
        )?;
    }
    for (n, case) in cases.iter().enumerate() {
        let (x, y) = ((n as f64 + 0.475) * step, base + 16.0);
        writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
            escaped(case)
        )?;
    }
    Ok(())
}

/// How high a value's bar is, as a part of the highest, and whether it grows with it.
fn scale(bars: &[Bar<'_>]) -> (impl Fn(f64) -> f64 + use<>, bool) {
    let above_none = bars.iter().map(|bar| bar.value).filter(|value| *value > 0.0);
    let (least, most) =
        above_none.fold((f64::INFINITY, 0.0_f64), |(least, most), v| (least.min(v), most.max(v)));
    let is_linear = most <= least * LINEAR_MOST;
    // the least one is seen, too
    let floor = least / 2.0;
    let share = move |value: f64| match (value > 0.0, is_linear) {
        (false, _) => 0.0,
        (true, true) => value / most,
        (true, false) => (value / floor).ln() / (most / floor).ln(),
    };
    (share, is_linear)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{Bar, scale};

    fn bars(values: &[f64]) -> Vec<Bar<'static>> {
        let bar = |value: &f64| Bar { case: "a", is_ours: true, value: *value, label: "".into() };
        values.iter().map(bar).collect()
    }

    #[test]
    fn bars_grow_with_values_or_their_logarithms() {
        let (share, is_linear) = scale(&bars(&[10.0, 5.0, 0.0]));
        assert!(is_linear);
        assert_eq!([share(10.0), share(5.0), share(0.0)], [1.0, 0.5, 0.0]);
        let (share, is_linear) = scale(&bars(&[1.0, 1000.0]));
        assert!(!is_linear && share(1.0) > 0.05 && share(1000.0) == 1.0);
        let (share, _) = scale(&bars(&[0.0]));
        assert_eq!(share(0.0), 0.0);
    }
}
