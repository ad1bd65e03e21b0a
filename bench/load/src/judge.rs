//! What is known of the rows that a task writes, and whether what is read agrees with it.

/// How wide a row's first column is: its number, filled up.
const WIDTH: usize = 100;
/// What it is filled up with.
const FILLER: char = 'x';

/// A number as its row holds it.
pub fn shown(number: u64) -> String {
    let mut text = number.to_string();
    text.extend(std::iter::repeat_n(FILLER, WIDTH.saturating_sub(text.len())));
    text
}

/// The number that a row holds, if there is the row and it holds one.
pub fn number(text: Option<&str>) -> Option<u64> {
    text?.trim_end_matches(FILLER).parse().ok()
}

/// A row, which one task alone writes, with a number that rises.
#[derive(Clone)]
struct Row {
    key: String,
    /// The last number that was acknowledged or read.
    acknowledged: u64,
    /// The last number that was tried.
    tried: u64,
}

/// The rows of a task.
#[derive(Clone)]
pub struct Rows(Vec<Row>);

impl Rows {
    /// Those of one task of so many, of so many rows in all.
    pub fn new(name: &str, task: usize, tasks: usize, count: usize) -> Self {
        let row = |n: usize| Row { key: format!("{name}{n}"), acknowledged: 0, tried: 0 };
        Self((task..count).step_by(tasks).map(row).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn key(&self, at: usize) -> &str {
        self.0.get(at).map_or("", |row| &row.key)
    }

    /// The next number to be written: from now on a read may show it, whatever becomes of the
    /// write.
    pub fn try_next(&mut self, at: usize) -> u64 {
        self.0.get_mut(at).map_or(0, |row| {
            row.tried += 1;
            row.tried
        })
    }

    /// A write of a number succeeded: from now on each read has to show it, or a later one.
    pub fn acknowledge(&mut self, at: usize, number: u64) {
        if let Some(row) = self.0.get_mut(at) {
            row.acknowledged = number;
        }
    }

    /// What is wrong with a number that was read.
    pub fn wrong(&self, at: usize, number: Option<u64>, place: &str) -> Option<String> {
        let row = self.0.get(at)?;
        if number.is_some_and(|n| (row.acknowledged..=row.tried).contains(&n)) {
            return None;
        }
        let number = number.map_or_else(|| "None".to_owned(), |n| n.to_string());
        let Row { key, acknowledged, tried } = row;
        Some(format!("{place} of {key}: {number}, not {acknowledged} to {tried}"))
    }

    /// A task reads a row: what is wrong with that. Whoever reads again must see the number too.
    pub fn read(&mut self, at: usize, number: Option<u64>) -> Option<String> {
        let wrong = self.wrong(at, number, "read");
        if let (None, Some(number)) = (&wrong, number) {
            self.acknowledge(at, number);
        }
        wrong
    }
}

/// A row to which conditional statements add one.
struct Condition {
    key: String,
    /// The values that statements which were applied gave it.
    applied: Vec<i32>,
    /// Statements that failed: whether they were applied nobody knows.
    unknown: usize,
}

/// Such rows.
pub struct Conditions(Vec<Condition>);

impl Conditions {
    const COUNT: usize = 5;

    pub fn new(name: &str) -> Self {
        let condition =
            |n: usize| Condition { key: format!("{name}{n}"), applied: Vec::new(), unknown: 0 };
        Self((0..Self::COUNT).map(condition).collect())
    }

    pub fn keys(&self) -> impl Iterator<Item = String> + use<> {
        self.0.iter().map(|each| each.key.clone()).collect::<Vec<_>>().into_iter()
    }

    /// A statement was applied.
    pub fn applied(&mut self, key: &str, value: i32) {
        self.with(key, |each| each.applied.push(value));
    }

    /// A statement was sent and failed.
    pub fn unknown(&mut self, key: &str) {
        self.with(key, |each| each.unknown += 1);
    }

    fn with(&mut self, key: &str, change: impl FnOnce(&mut Condition)) {
        if let Some(each) = self.0.iter_mut().find(|each| each.key == key) {
            change(each);
        }
    }

    /// (How many were applied, of how many nobody knows.)
    pub fn counts(&self) -> (usize, usize) {
        let applied = self.0.iter().map(|each| each.applied.len()).sum();
        (applied, self.0.iter().map(|each| each.unknown).sum())
    }

    /// What is wrong with the value that a row has in the end.
    pub fn wrong(&self, key: &str, value: Option<i32>) -> Option<String> {
        let Condition { applied, unknown, .. } = self.0.iter().find(|each| each.key == key)?;
        let mut different = applied.clone();
        different.sort_unstable();
        different.dedup();
        if different.len() < applied.len() {
            return Some(format!("condition {key}: one was applied twice"));
        }
        let most = applied.len() + unknown;
        let known = value.and_then(|value| usize::try_from(value).ok());
        if known.is_some_and(|value| (applied.len()..=most).contains(&value)) {
            return None;
        }
        let applied = applied.len();
        let value = value.map_or_else(|| "None".to_owned(), |value| value.to_string());
        Some(format!(
            "condition {key} is {value}: {applied} were applied and of {unknown} nobody knows"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Rows, number, shown};

    fn rows() -> Rows {
        Rows::new("user", 1, 3, 10)
    }

    /// Row 0 with numbers 1 acknowledged, 2 and 3 tried.
    fn written() -> Rows {
        let mut rows = rows();
        let first = rows.try_next(0);
        rows.acknowledge(0, first);
        rows.try_next(0);
        rows.try_next(0);
        rows
    }

    #[test]
    fn each_row_has_one_task() {
        let mut keys: Vec<String> = (0..3)
            .flat_map(|task| {
                let rows = Rows::new("user", task, 3, 10);
                (0..rows.len()).map(|at| rows.key(at).to_owned()).collect::<Vec<_>>()
            })
            .collect();
        keys.sort();
        assert_eq!(keys, (0..10).map(|n| format!("user{n}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_row_holds_its_number() {
        assert_eq!(shown(12).len(), 100);
        assert_eq!(number(Some(&shown(0))), Some(0));
        assert_eq!(number(Some(&shown(1207))), Some(1207));
        assert_eq!(number(None), None);
        assert_eq!(number(Some("")), None);
        assert_eq!(number(Some("something else")), None);
    }

    #[test]
    fn what_was_acknowledged_or_tried_is_right() {
        for number in 1..=3 {
            assert_eq!(written().read(0, Some(number)), None);
        }
        assert_eq!(rows().read(0, Some(0)), None);
    }

    #[test]
    fn an_older_number_than_acknowledged_is_wrong() {
        let wrong = written().read(0, Some(0)).expect("the acknowledged write is lost");
        assert_eq!(wrong, "read of user1: 0, not 1 to 3");
    }

    #[test]
    fn a_number_that_was_never_tried_is_wrong() {
        assert!(written().read(0, Some(4)).is_some());
    }

    #[test]
    fn a_row_that_is_gone_is_wrong() {
        assert_eq!(written().read(0, None).expect("no row"), "read of user1: None, not 1 to 3");
    }

    #[test]
    fn a_number_that_was_read_must_be_read_again() {
        let mut rows = written();
        assert_eq!(rows.read(0, Some(3)), None);
        assert!(rows.read(0, Some(2)).is_some());
    }

    #[test]
    fn a_wrong_read_is_not_what_later_ones_are_held_to() {
        let mut rows = written();
        assert!(rows.read(0, Some(9)).is_some());
        assert_eq!(rows.read(0, Some(1)), None);
    }

    #[test]
    fn rows_are_judged_each_by_itself() {
        let mut rows = written();
        assert!(rows.read(1, Some(1)).is_some());
        assert_eq!(rows.read(1, Some(0)), None);
    }

    #[test]
    fn conditions_that_were_applied_add_up() {
        let mut conditions = Conditions::new("user");
        conditions.applied("user0", 1);
        conditions.applied("user0", 2);
        assert_eq!(conditions.wrong("user0", Some(2)), None);
        assert_eq!(conditions.wrong("user1", Some(0)), None);
        assert_eq!(conditions.counts(), (2, 0));
    }

    #[test]
    fn a_condition_that_is_lost_is_wrong() {
        let mut conditions = Conditions::new("user");
        conditions.applied("user0", 1);
        assert!(conditions.wrong("user0", Some(0)).is_some());
        assert!(conditions.wrong("user0", None).is_some());
        // that another failed is no excuse
        conditions.unknown("user0");
        assert!(conditions.wrong("user0", Some(0)).is_some());
    }

    #[test]
    fn a_condition_applied_twice_is_wrong() {
        let mut conditions = Conditions::new("user");
        conditions.applied("user0", 1);
        conditions.applied("user0", 1);
        assert!(conditions.wrong("user0", Some(2)).is_some());
        assert!(conditions.wrong("user0", Some(1)).is_some());
    }

    #[test]
    fn one_applied_that_nobody_asked_for_is_wrong() {
        let mut conditions = Conditions::new("user");
        conditions.applied("user0", 1);
        assert!(conditions.wrong("user0", Some(2)).is_some());
    }

    #[test]
    fn of_one_that_failed_nobody_knows() {
        let mut conditions = Conditions::new("user");
        conditions.applied("user0", 1);
        conditions.unknown("user0");
        assert_eq!(conditions.wrong("user0", Some(1)), None);
        assert_eq!(conditions.wrong("user0", Some(2)), None);
        assert!(conditions.wrong("user0", Some(3)).is_some());
    }
}
