//! `nodetool tablehistograms`.

use std::fmt::Write;

use crate::model::{Percentiles, Sizes, TableHistograms};

/// The text of `tablehistograms` of one table.
pub(super) fn print(of: &TableHistograms) -> String {
    let mut text = String::new();
    let none = [f64::NAN; 7];
    let (bytes, cells) = match &of.partitions {
        None => {
            text.push_str(
                "No SSTables exists, unable to calculate 'Partition Size' and 'Cell Count' percentiles\n",
            );
            (none, none)
        }
        Some(of) => {
            (known("Row sizes", &of.bytes, &mut text), known("Column counts", &of.cells, &mut text))
        }
    };
    let TableHistograms { keyspace, table, .. } = of;
    let _ = writeln!(text, "{keyspace}/{table} histograms");
    let mut line = |first: &str, columns: [String; 5]| {
        let _ = write!(text, "{first:<10}");
        for column in columns {
            let _ = write!(text, "{column:>18}");
        }
        text.push('\n');
    };
    let heads = ["Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count"];
    line("Percentile", heads.map(str::to_owned));
    line("", ["(micros)", "(micros)", "", "(bytes)", ""].map(str::to_owned));
    let measured = [of.read_micros, of.write_micros, of.sstables_per_read];
    let [reads, writes, sstables] = measured.map(|of| of.values());
    let columns = [reads, writes, sstables, bytes, cells];
    for (at, name) in Percentiles::NAMES.into_iter().enumerate() {
        let mut values = columns.iter().map(|column| column.get(at).copied().unwrap_or(f64::NAN));
        let mut next = |decimals: usize| {
            let value = values.next().unwrap_or(f64::NAN);
            if value.is_nan() { "NaN".to_owned() } else { format!("{value:.decimals$}") }
        };
        line(name, [next(2), next(2), next(2), next(0), next(0)]);
    }
    text.push('\n');
    text
}

fn known(what: &str, sizes: &Sizes, text: &mut String) -> [f64; 7] {
    if let Some(limit) = sizes.beyond {
        let _ = writeln!(text, "{what} are larger than {limit}, unable to calculate percentiles");
    }
    sizes.percentiles.values()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PartitionHistograms;

    /// As the format strings of `TableHistograms` put it.
    #[test]
    fn is_laid_out_as_cassandras() {
        let column = |least: f64| Percentiles::from([5.0, 6.0, 7.0, 8.0, 9.0, least, 10.0]);
        let sizes = |least| Sizes { percentiles: column(least), beyond: None };
        let mut of = TableHistograms {
            keyspace: "ks".into(),
            table: "t".into(),
            read_micros: column(4.0),
            write_micros: column(3.0),
            sstables_per_read: Percentiles::default(),
            partitions: Some(PartitionHistograms { bytes: sizes(1.0), cells: sizes(2.0) }),
        };
        let text = print(&of);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ks/t histograms");
        assert_eq!(
            lines[1],
            "Percentile      Read Latency     Write Latency          SSTables    Partition Size        Cell Count"
        );
        assert_eq!(
            lines[3],
            "50%                     5.00              5.00              0.00                 5                 5"
        );
        assert_eq!(
            lines[8],
            "Min                     4.00              3.00              0.00                 1                 2"
        );
        assert!(text.ends_with("10\n\n"));
        of.partitions = None;
        let text = print(&of);
        assert!(text.starts_with("No SSTables exists, unable to calculate"), "{text}");
        assert!(text.lines().any(|line| line.ends_with("NaN               NaN")), "{text}");
    }
}
