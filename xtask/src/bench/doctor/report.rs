//! What an experiment found: a table in Markdown, a plot, and what the client said. All is written
//! again after each row, so that what there is outlives an interruption.

use std::fmt::Write as _;
use std::fs;

use super::plot::{self, Bar};
use super::{Plan, System};
use crate::machine::Outcome;

/// A column of figures.
pub struct Figure {
    /// With its unit.
    pub name: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    pub is_plotted: bool,
}

/// One that is in the plot, too.
pub const fn plotted(name: &'static str, decimals: usize) -> Figure {
    Figure { name, decimals, is_plotted: true }
}

/// One of the table alone.
pub const fn listed(name: &'static str, decimals: usize) -> Figure {
    Figure { name, decimals, is_plotted: false }
}

struct Row {
    case: String,
    system: System,
    /// One that could not be had is no number.
    figures: Vec<f64>,
}

/// What an experiment found so far.
pub struct Report {
    file: String,
    title: String,
    figures: &'static [Figure],
    notes: Vec<String>,
    rows: Vec<Row>,
    raw: String,
}

impl Report {
    pub fn new(plan: &Plan, name: &str, title: &str, figures: &'static [Figure]) -> Outcome<Self> {
        let mut notes = vec![machine()?];
        if plan.is_short {
            notes.push("A short run: it shows that the experiment works, and no more.".to_owned());
        }
        Ok(Self {
            file: format!("doctor-{}-{name}", plan.stamp),
            title: title.to_owned(),
            figures,
            notes,
            rows: Vec::new(),
            raw: String::new(),
        })
    }

    /// A sentence below the title.
    pub fn note(&mut self, text: String) {
        println!("  {text}");
        self.notes.push(text);
    }

    /// What was found of a system in a case, and what the client said.
    pub fn row(
        &mut self,
        (case, system): (&str, System),
        figures: &[f64],
        said: &[&str],
    ) -> Outcome {
        for line in said {
            writeln!(self.raw, "{case}, {}: {line}", system.name())?;
        }
        let row = Row { case: case.to_owned(), system, figures: figures.to_vec() };
        println!("  {case}, {}: {}", system.name(), self.cells(&row).join(", "));
        self.rows.push(row);
        self.keep()
    }

    /// Prints the table, and where all is.
    pub fn end(&self) -> Outcome {
        self.keep()?;
        println!("{}", self.markdown()?);
        println!("kept as {}", crate::bench::results()?.join(&self.file).display());
        Ok(())
    }

    fn keep(&self) -> Outcome {
        let results = crate::bench::results()?;
        let kept = |kind: &str, text: String| {
            fs::write(results.join(format!("{}.{kind}", self.file)), text)
        };
        kept("txt", self.raw.clone())?;
        kept("md", self.markdown()?)?;
        Ok(kept("svg", self.plot()?)?)
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let cell = |(figure, value): (&Figure, &f64)| match value.is_finite() {
            true => format!("{value:.*}", figure.decimals),
            false => "-".to_owned(),
        };
        self.figures.iter().zip(&row.figures).map(cell).collect()
    }

    /// Rows of a case stand together, in the order in which cases came first.
    fn by_case(&self) -> Vec<&Row> {
        let first = |case: &str| self.rows.iter().position(|row| row.case == case);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| first(&row.case));
        rows
    }

    fn markdown(&self) -> Outcome<String> {
        let mut text = format!("# {}\n\n{}\n\n", self.title, self.notes.join(" "));
        let names: Vec<&str> = self.figures.iter().map(|figure| figure.name).collect();
        writeln!(text, "| case | system | {} |", names.join(" | "))?;
        writeln!(text, "|---|---|{}", "---:|".repeat(names.len()))?;
        for row in self.by_case() {
            let cells = self.cells(row).join(" | ");
            writeln!(text, "| {} | {} | {cells} |", row.case, row.system.name())?;
        }
        Ok(text)
    }

    fn plot(&self) -> Outcome<String> {
        let rows = self.by_case();
        let plotted = self.figures.iter().enumerate().filter(|(_, figure)| figure.is_plotted);
        let panels = plotted.map(|(at, figure)| {
            let bars = rows.iter().filter_map(|row| {
                let value = row.figures.get(at).copied()?;
                let case = row.case.as_str();
                let label = format!("{value:.*}", figure.decimals);
                let is_ours = row.system == System::Helenus;
                value.is_finite().then_some(Bar { case, is_ours, value, label })
            });
            (figure.name, bars.collect())
        });
        plot::svg(&self.title, &panels.collect::<Vec<_>>())
    }
}

/// What it was measured on.
fn machine() -> Outcome<String> {
    let cores = std::thread::available_parallelism()?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = kib.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split_whitespace().next().unwrap_or_default();
    Ok(format!(
        "{cores} cores, which the client and all nodes share; {} GB of memory; Linux {}. \
         The load average was {load} at the start.",
        kib.unwrap_or_default() >> 20,
        kernel.trim(),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Figure, Report, Row, System, listed, plotted};

    const FIGURES: [Figure; 2] = [plotted("reads/s", 0), listed("p99, ms", 2)];

    fn report() -> Report {
        let row = |case: &str, system, figures: [f64; 2]| Row {
            case: case.to_owned(),
            system,
            figures: figures.to_vec(),
        };
        Report {
            file: String::new(),
            title: "Sizes".to_owned(),
            figures: &FIGURES,
            notes: vec!["A note.".to_owned()],
            rows: vec![
                row("1 KB", System::Helenus, [1000.4, 1.5]),
                row("1 MB", System::Helenus, [10.0, f64::NAN]),
                row("1 KB", System::Cassandra, [500.0, 3.0]),
            ],
            raw: String::new(),
        }
    }

    #[test]
    fn systems_stand_together_in_each_case() {
        let wanted = "# Sizes\n\nA note.\n\n| case | system | reads/s | p99, ms |\n\
                      |---|---|---:|---:|\n| 1 KB | Helenus | 1000 | 1.50 |\n\
                      | 1 KB | Cassandra | 500 | 3.00 |\n| 1 MB | Helenus | 10 | - |\n";
        assert_eq!(report().markdown().expect("a table"), wanted);
    }

    #[test]
    fn only_what_is_to_be_is_plotted() {
        let plot = report().plot().expect("a plot");
        assert_eq!(plot.matches("<rect").count(), 3 + 2, "three bars, two colours: {plot}");
        assert!(plot.contains("reads/s") && !plot.contains("p99"));
    }
}
