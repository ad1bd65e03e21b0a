//! Which entries are logged (`AuditLogFilter`).

use crate::entry::Entry;

/// Names that are logged, and names that are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names {
    included: Vec<String>,
    excluded: Vec<String>,
}

/// Which entries are logged: by keyspace, category and user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    keyspaces: Names,
    categories: Names,
    users: Names,
}

fn split(list: &str) -> Vec<String> {
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

impl Names {
    fn new(included: &str, excluded: &str) -> Self {
        let excluded = split(excluded);
        let mut included = split(included);
        included.retain(|name| !excluded.contains(name));
        Self { included, excluded }
    }

    /// No name is a name that nobody lists.
    fn pass(&self, name: Option<&str>) -> bool {
        let is_in = |names: &[String]| name.is_some_and(|name| names.iter().any(|n| n == name));
        !is_in(&self.excluded) && (self.included.is_empty() || is_in(&self.included))
    }
}

impl Filter {
    /// By lists with commas, each of included and of excluded names.
    pub fn new(keyspaces: [&str; 2], categories: [&str; 2], users: [&str; 2]) -> Self {
        let names = |[included, excluded]: [&str; 2]| Names::new(included, excluded);
        Self { keyspaces: names(keyspaces), categories: names(categories), users: names(users) }
    }

    /// Is this one logged?
    pub fn pass(&self, entry: &Entry) -> bool {
        self.keyspaces.pass(entry.keyspace.as_deref())
            && self.categories.pass(Some(entry.kind.category().name()))
            && self.users.pass(entry.user.as_deref())
    }

    /// The lists as they are applied: included and excluded keyspaces, categories and users.
    pub fn lists(&self) -> [String; 6] {
        let Self { keyspaces, categories, users } = self;
        [
            keyspaces.included.join(","),
            keyspaces.excluded.join(","),
            categories.included.join(","),
            categories.excluded.join(","),
            users.included.join(","),
            users.excluded.join(","),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Client, Statement};
    use crate::kind::Kind;

    #[test]
    fn keyspace_category_and_user_have_to_pass() {
        let host = "127.0.0.1:7000".parse().unwrap();
        let client = Client { user: Some("u"), host, source: host, keyspace: Some("ks") };
        let entry = client.ran(&Statement::new(Kind::Select), "SELECT", 1);
        let pass =
            |keyspaces, categories, users| Filter::new(keyspaces, categories, users).pass(&entry);
        assert!(pass(["ks", ""], ["QUERY", ""], ["u", ""]));
        assert!(!pass(["", "ks"], ["", ""], ["", ""]));
        assert!(!pass(["", ""], ["", "QUERY"], ["", ""]));
        assert!(!pass(["", ""], ["", ""], ["other", ""]));
    }

    #[test]
    fn who_is_excluded_is_not_included() {
        let names = Names::new("a,b", "b,c");
        let passing = ["a", "b", "c", "d"].map(|name| names.pass(Some(name)));
        assert_eq!(passing, [true, false, false, false]);
        assert!(!names.pass(None), "no name is in no list");
        assert!(Names::new("", "a").pass(None));
        let filter = Filter::new(["a,,b", "b"], ["", ""], ["u", ""]);
        assert_eq!(filter.lists(), ["a", "b", "", "", "u", ""].map(str::to_owned));
    }
}
