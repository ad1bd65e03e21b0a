//! GRANT, REVOKE and LIST.

use super::role::role;
use super::{K, Parser, Res, object_name};
use crate::ast::{
    GrantPermissions, GrantRole, ListPermissions, ListRoles, Permission, Resource, RoleStatement,
    Statement,
};
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn grant(&mut self) -> Res<Statement> {
        self.expect_word(K::Grant)?;
        if self.is_permission() {
            return Ok(role(RoleStatement::Grant(self.granted_permissions(K::To)?)));
        }
        Ok(role(RoleStatement::GrantRole(self.granted_role(K::To)?)))
    }

    pub(super) fn revoke(&mut self) -> Res<Statement> {
        self.expect_word(K::Revoke)?;
        if self.is_permission() {
            return Ok(role(RoleStatement::Revoke(self.granted_permissions(K::From)?)));
        }
        Ok(role(RoleStatement::RevokeRole(self.granted_role(K::From)?)))
    }

    /// Whether permissions stand here and not a role. `all`, `unmask` and `select_masked` may name
    /// a role.
    fn is_permission(&self) -> bool {
        match self.kind() {
            Kind::Keyword(K::All | K::Unmask | K::SelectMasked) => {
                !matches!(self.kind_at(1), Kind::Keyword(K::To | K::From))
            }
            Kind::Keyword(word) => permission(word).is_some(),
            _ => false,
        }
    }

    fn granted_role(&mut self, preposition: K) -> Res<GrantRole> {
        let role = self.role_name()?;
        self.expect_word(preposition)?;
        Ok(GrantRole { role, grantee: self.role_name()? })
    }

    fn granted_permissions(&mut self, preposition: K) -> Res<GrantPermissions> {
        let mut permissions = self.permissions()?;
        self.expect_word(K::On)?;
        let resource = self.resource()?;
        self.expect_word(preposition)?;
        let grantee = self.role_name()?;
        permissions.retain(|p| resource.applies(*p));
        if permissions.is_empty() {
            let class = match resource {
                Resource::AllKeyspaces
                | Resource::Keyspace(_)
                | Resource::AllTables(_)
                | Resource::Table(_) => "DataResource",
                Resource::AllRoles | Resource::Role(_) => "RoleResource",
                Resource::AllFunctions | Resource::FunctionsIn(_) | Resource::Function(..) => {
                    "FunctionResource"
                }
                Resource::AllMbeans | Resource::Mbean { .. } => "JMXResource",
            };
            return self.rule(format!(
                "Resource type {class} does not support any of the requested permissions"
            ));
        }
        Ok(GrantPermissions { permissions, resource, grantee })
    }

    /// `ALL [PERMISSIONS]` or `p [PERMISSION], ...`.
    fn permissions(&mut self) -> Res<Vec<Permission>> {
        if self.eat_word(K::All) {
            self.eat_word(K::Permissions);
            return Ok(Permission::ALL.to_vec());
        }
        let mut list = self.comma_list(|p| {
            let found = match p.kind() {
                Kind::Keyword(word) => permission(word),
                _ => None,
            };
            let Some(found) = found else { return p.no_viable() };
            p.skip();
            p.eat_word(K::Permission);
            Ok(found)
        })?;
        list.sort();
        list.dedup();
        Ok(list)
    }

    pub(super) fn list(&mut self) -> Res<Statement> {
        self.expect_word(K::List)?;
        match self.kind() {
            Kind::Keyword(K::Roles) => {
                self.skip();
                let of = if self.eat_word(K::Of) { Some(self.role_name()?) } else { None };
                let recursive = !self.eat_word(K::Norecursive);
                Ok(role(RoleStatement::List(ListRoles { of, recursive })))
            }
            Kind::Keyword(K::Users) => {
                self.skip();
                Ok(role(RoleStatement::ListUsers))
            }
            _ => {
                let permissions = self.permissions()?;
                let resource = if self.eat_word(K::On) { Some(self.resource()?) } else { None };
                let of = if self.eat_word(K::Of) { Some(self.role_name()?) } else { None };
                let recursive = !self.eat_word(K::Norecursive);
                let list = ListPermissions { permissions, resource, of, recursive };
                Ok(role(RoleStatement::ListPermissions(list)))
            }
        }
    }

    /// A resource. Most of its words may also name a table: what follows decides.
    fn resource(&mut self) -> Res<Resource> {
        let Kind::Keyword(word) = self.kind() else {
            return Ok(Resource::Table(self.table_name()?));
        };
        let next = self.kind_at(1);
        match word {
            K::All => self.all_of(next),
            K::Keyspace => {
                self.skip();
                Ok(Resource::Keyspace(self.keyspace_name()?))
            }
            K::Table => {
                self.skip();
                Ok(Resource::Table(self.table_name()?))
            }
            K::Role if self.is_name_at(1) || matches!(next, Kind::String | Kind::Question) => {
                self.skip();
                Ok(Resource::Role(self.role_name()?))
            }
            K::Function if self.is_name_at(1) || self.is_function_at(1) => {
                self.skip();
                let name = self.function_name()?;
                let arguments = self.paren_list_or_empty(Self::data_type)?;
                if name.keyspace.is_none() {
                    return self.invalid(
                        "In this context function name must be explictly qualified by a keyspace"
                            .to_owned(),
                    );
                }
                Ok(Resource::Function(name, arguments))
            }
            K::Mbean | K::Mbeans if next == Kind::String => {
                self.skip();
                let pattern = word == K::Mbeans;
                let name = self.string()?;
                match object_name::refusal(&name, pattern) {
                    Some(message) => self.rule(message),
                    None => Ok(Resource::Mbean { name, pattern }),
                }
            }
            _ => Ok(Resource::Table(self.table_name()?)),
        }
    }

    /// `ALL ..`, unless that is a table's name.
    fn all_of(&mut self, next: Kind) -> Res<Resource> {
        let resource = match next {
            Kind::Keyword(K::Keyspaces) => Resource::AllKeyspaces,
            Kind::Keyword(K::Roles) => Resource::AllRoles,
            Kind::Keyword(K::Mbeans) => Resource::AllMbeans,
            Kind::Keyword(K::Functions) => Resource::AllFunctions,
            Kind::Keyword(K::Tables) => {
                self.skip();
                self.skip();
                self.expect_words(&[K::In, K::Keyspace])?;
                return Ok(Resource::AllTables(self.keyspace_name()?));
            }
            _ => return Ok(Resource::Table(self.table_name()?)),
        };
        self.skip();
        self.skip();
        if resource == Resource::AllFunctions && self.eat_word(K::In) {
            self.expect_word(K::Keyspace)?;
            return Ok(Resource::FunctionsIn(self.keyspace_name()?));
        }
        Ok(resource)
    }
}

fn permission(word: K) -> Option<Permission> {
    Some(match word {
        K::Create => Permission::Create,
        K::Alter => Permission::Alter,
        K::Drop => Permission::Drop,
        K::Select => Permission::Select,
        K::Modify => Permission::Modify,
        K::Authorize => Permission::Authorize,
        K::Describe => Permission::Describe,
        K::Execute => Permission::Execute,
        K::Unmask => Permission::Unmask,
        K::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}
