import { render } from 'preact';
import './style/base.css';
import './style/shell.css';
import './style/cameras.css';
import './style/camera.css';
import './style/system.css';
import './style/models.css';
import { App, AppProvider } from './app';
import { adoptPath } from './route';
import { followTheme } from './theme';
import { Shell } from './view/shell';

adoptPath();
const app = new App();
followTheme(app.prefs);
render(
  <AppProvider value={app}>
    <Shell />
  </AppProvider>,
  document.getElementById('app')!,
);
app.start();
