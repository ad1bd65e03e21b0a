//! The words behind a verb: options anywhere, the others in order.

use std::collections::VecDeque;

use super::VerbError;

/// Words not yet taken.
pub(super) struct Args {
    verb: String,
    /// Nodes are to be shown with their ports.
    pub print_port: bool,
    words: VecDeque<String>,
    /// Words behind `--`, which are no options.
    plain: VecDeque<String>,
}

impl Args {
    pub fn new<'a>(verb: &str, words: impl Iterator<Item = &'a str>, print_port: bool) -> Self {
        let mut words: VecDeque<String> = words.map(str::to_owned).collect();
        let plain = match words.iter().position(|w| w == "--") {
            Some(at) => {
                let mut plain = words.split_off(at);
                plain.pop_front();
                plain
            }
            None => VecDeque::new(),
        };
        Self { verb: verb.to_owned(), print_port, words, plain }
    }

    /// Takes an option without a value.
    pub fn flag(&mut self, names: &[&'static str]) -> bool {
        let before = self.words.len();
        self.words.retain(|w| !names.contains(&w.as_str()));
        self.words.len() < before
    }

    /// Takes an option with its value; of several, the last counts.
    pub fn value(&mut self, names: &[&'static str]) -> Result<Option<String>, VerbError> {
        let mut taken = None;
        while let Some(at) = self.words.iter().position(|w| names.contains(&w.as_str())) {
            let name = self.words.remove(at).unwrap_or_default();
            let missing = || {
                VerbError::Arguments(format!("Required values for option '{name}' not provided"))
            };
            taken = Some(self.words.remove(at).ok_or_else(missing)?);
        }
        Ok(taken)
    }

    /// Takes an option with its value, whose title airline names where it is missing; of several,
    /// the last counts.
    pub fn titled(
        &mut self,
        names: &[&'static str],
        title: &str,
    ) -> Result<Option<String>, VerbError> {
        Ok(self.values(names, title)?.pop())
    }

    /// Takes an option that may be there several times, with its values.
    pub fn values(
        &mut self,
        names: &[&'static str],
        title: &str,
    ) -> Result<Vec<String>, VerbError> {
        let mut taken = Vec::new();
        while let Some(at) = self.words.iter().position(|w| names.contains(&w.as_str())) {
            self.words.remove(at);
            let missing = || {
                VerbError::Arguments(format!("Required values for option '{title}' not provided"))
            };
            taken.push(self.words.remove(at).ok_or_else(missing)?);
        }
        Ok(taken)
    }

    /// Refuses an option of Cassandra's.
    pub fn not_served(&mut self, names: &[&'static str]) -> Result<(), VerbError> {
        match self.words.iter().find(|w| names.contains(&w.as_str())) {
            Some(found) => Err(VerbError::NotServed(format!("{} {found}", self.verb))),
            None => Ok(()),
        }
    }

    /// Takes the next argument.
    pub fn take(&mut self) -> Option<String> {
        self.words.pop_front().or_else(|| self.plain.pop_front())
    }

    /// Takes all arguments left.
    pub fn rest(&mut self) -> Vec<String> {
        let words = std::mem::take(&mut self.words);
        words.into_iter().chain(std::mem::take(&mut self.plain)).collect()
    }

    /// Nothing may be left.
    pub fn end(mut self) -> Result<(), VerbError> {
        let rest = self.rest();
        if rest.is_empty() { Ok(()) } else { Err(VerbError::Unexpected(rest)) }
    }
}
