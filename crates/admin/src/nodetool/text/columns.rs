//! Columns as wide as their widest cell, as `tools.nodetool.formatter.TableBuilder` makes them:
//! each padded, the last too.

/// Rows of cells.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.extend(cells.into_iter());
    }

    /// A row of as many cells as there are.
    pub fn extend<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        self.rows.push(cells.map(str::to_owned).collect());
    }

    /// The least widths of the columns.
    pub fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            for (n, cell) in row.iter().enumerate() {
                let width = cell.chars().count();
                match widths.get_mut(n) {
                    Some(least) => *least = width.max(*least),
                    None => widths.push(width),
                }
            }
        }
        widths
    }

    /// The rows, with at least these widths.
    pub fn text(&self, widths: &[usize], delimiter: &str) -> String {
        let mut text = String::new();
        for row in &self.rows {
            for (n, width) in widths.iter().enumerate() {
                let cell = row.get(n).map_or("", String::as_str);
                let delimiter = if n == 0 { "" } else { delimiter };
                text.push_str(delimiter);
                text.push_str(cell);
                text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
            }
            text.push('\n');
        }
        text
    }
}

/// The wider of each column.
pub(super) fn widest(a: &[usize], b: &[usize]) -> Vec<usize> {
    let len = a.len().max(b.len());
    let at = |widths: &[usize], n| widths.get(n).copied().unwrap_or(0);
    (0..len).map(|n| at(a, n).max(at(b, n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_every_column_of_every_row() {
        let mut columns = Columns::default();
        columns.row(["a", "1"]);
        columns.row(["bbb", "22", "x"]);
        assert_eq!(columns.text(&columns.widths(), " "), "a   1   \nbbb 22 x\n");
        assert_eq!(columns.text(&widest(&[4], &columns.widths()), ","), "a   ,1 , \nbbb ,22,x\n");
    }
}
